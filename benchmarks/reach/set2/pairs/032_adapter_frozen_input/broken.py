import torch
from torch import nn
from torch.autograd.function import once_differentiable


class LowRankAdapter(torch.autograd.Function):
    """x + scale * (x A^T) B^T with A (r, d), B (d, r)."""

    @staticmethod
    def forward(ctx, x, A, B, scale):
        u = x @ A.t()
        ctx.save_for_backward(x, A, B, u)
        ctx.scale = scale
        return x + scale * (u @ B.t())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, A, B, u = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None, None, None
        g = ctx.scale * grad_output
        du = g @ B
        return grad_output + du @ A, du.t() @ x, g.t() @ u, None


class Adapter(nn.Module):
    def __init__(self, dim, rank, scale=1.0):
        super().__init__()
        self.A = nn.Parameter(torch.randn(rank, dim) / dim**0.5)
        self.B = nn.Parameter(torch.zeros(dim, rank))
        self.scale = scale

    def forward(self, x):
        return LowRankAdapter.apply(x, self.A, self.B, self.scale)


gradsmith_inputs = {
    "LowRankAdapter": lambda: (
        torch.randn(4, 6, requires_grad=True),
        torch.randn(2, 6, requires_grad=True),
        torch.randn(6, 2, requires_grad=True),
        0.5,
    )
}
