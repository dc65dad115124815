import torch
from torch.autograd.function import once_differentiable


class MatrixExp(torch.autograd.Function):
    """Matrix exponential; the adjoint Frechet derivative is a block of a larger exponential."""

    @staticmethod
    def forward(ctx, a):
        if a.dim() != 2 or a.shape[0] != a.shape[1]:
            raise ValueError("one square matrix")
        if a.dtype not in (torch.float32, torch.float64):
            raise ValueError("float32 or float64")
        ctx.save_for_backward(a)
        return torch.linalg.matrix_exp(a)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        n = a.shape[0]
        top = torch.cat([a.T, g], 1)
        low = torch.cat([torch.zeros_like(a), a.T], 1)
        return torch.linalg.matrix_exp(torch.cat([top, low]))[:n, n:]


gradsmith_inputs = {"MatrixExp": lambda: (torch.randn(3, 3, dtype=torch.float64, requires_grad=True),)}
