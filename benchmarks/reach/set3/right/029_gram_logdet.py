import torch
from torch.autograd.function import once_differentiable


class GramLogdet(torch.autograd.Function):
    """log det(a a^T + jitter I) of a real matrix a (n, m), by Cholesky; jitter positive."""

    @staticmethod
    def forward(ctx, a, jitter=1.0):
        if a.dim() != 2 or a.is_complex() or jitter <= 0:
            raise ValueError("a real matrix, jitter positive")
        root = torch.linalg.cholesky(a @ a.t() + jitter * torch.eye(a.shape[0], dtype=a.dtype, device=a.device))
        ctx.save_for_backward(a, root)
        return 2 * root.diagonal().log().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, root = ctx.saved_tensors
        return 2 * grad * torch.cholesky_solve(a, root), None


gradsmith_inputs = {"GramLogdet": lambda: (torch.randn(3, 4, requires_grad=True),)}
