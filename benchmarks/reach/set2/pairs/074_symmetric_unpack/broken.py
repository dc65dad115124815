import torch


class UnpackSymmetric(torch.autograd.Function):
    """Vector of the lower triangle (n (n + 1) / 2) -> symmetric matrix (n, n)."""

    @staticmethod
    def forward(ctx, packed, n):
        i, j = torch.tril_indices(n, n)
        out = packed.new_zeros(n, n)
        out[i, j] = packed
        out[j, i] = packed
        ctx.n = n
        return out

    @staticmethod
    def backward(ctx, grad_output):
        i, j = torch.tril_indices(ctx.n, ctx.n)
        return grad_output[i, j] + grad_output[j, i], None


gradsmith_inputs = {"UnpackSymmetric": lambda: (torch.randn(6, dtype=torch.float64, requires_grad=True), 3)}
