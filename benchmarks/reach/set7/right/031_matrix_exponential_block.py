import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class MatrixExp(Function):
    """exp(A); the adjoint of its Frechet derivative is read off the exponential of [[A^T, G], [0, A^T]]."""

    @staticmethod
    def forward(ctx, a):
        if a.dim() < 2 or a.size(-1) != a.size(-2) or a.dtype not in (torch.float32, torch.float64):
            raise TypeError("square matrices of single or double precision expected")
        ctx.save_for_backward(a)
        return torch.linalg.matrix_exp(a)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        n = a.size(-1)
        at = a.mT
        top = torch.cat([at, grad.expand_as(at)], -1)
        bottom = torch.cat([torch.zeros_like(at), at], -1)
        return torch.linalg.matrix_exp(torch.cat([top, bottom], -2))[..., :n, n:]


gradsmith_inputs = {"MatrixExp": lambda: (torch.randn(3, 3, requires_grad=True),)}
