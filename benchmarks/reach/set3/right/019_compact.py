import torch


class Compact(torch.autograd.Function):
    """x[mask]^2 of real x and a bool mask of its shape: the size of the output depends on the values of the mask."""

    @staticmethod
    def forward(ctx, x, mask):
        if mask.dtype != torch.bool or mask.shape != x.shape or x.is_complex():
            raise ValueError("bool mask of the shape of x")
        ctx.save_for_backward(x, mask)
        return x[mask].square()

    @staticmethod
    def backward(ctx, grad):
        x, mask = ctx.saved_tensors
        spread = torch.zeros_like(x).masked_scatter(mask, grad)
        return 2 * x * spread, None


gradsmith_inputs = {
    "Compact": lambda: (torch.randn(5, requires_grad=True), torch.tensor([True, False, True, True, False]))
}
