import torch


class PermuteColumns(torch.autograd.Function):
    """x[..., perm]; backward sorts the permutation instead of scattering."""

    @staticmethod
    def forward(ctx, x, perm):
        n = x.shape[-1]
        if perm.shape != (n,) or not torch.equal(perm.sort().values, torch.arange(n)):
            raise ValueError("not a permutation of the columns")
        ctx.save_for_backward(perm)
        return x[..., perm]

    @staticmethod
    def backward(ctx, grad):
        (perm,) = ctx.saved_tensors
        return grad[..., torch.argsort(perm)], None


gradsmith_inputs = {
    "PermuteColumns": lambda: (torch.randn(2, 4, dtype=torch.float64, requires_grad=True), torch.tensor([2, 0, 3, 1]))
}
