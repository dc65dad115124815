import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CosineDouble(Function):
    """Cosine similarity of rows; computed in double whatever comes in, and given back in the dtype of `a`."""

    @staticmethod
    def forward(ctx, a, b):
        if a.shape != b.shape or a.is_complex() or b.is_complex() or a.dim() == 0:
            raise ValueError("a and b must be real and of one shape")
        x, y = a.double(), b.double()
        nx, ny = x.norm(dim=-1, keepdim=True), y.norm(dim=-1, keepdim=True)
        if bool((nx == 0).any() or (ny == 0).any()):
            raise ZeroDivisionError("zero vector")
        ux, uy = x / nx, y / ny
        c = (ux * uy).sum(-1, keepdim=True)
        ctx.save_for_backward((uy - c * ux) / nx, (ux - c * uy) / ny)
        ctx.dtypes = a.dtype, b.dtype
        return c.squeeze(-1).to(a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        da, db = ctx.saved_tensors
        g = grad.double().unsqueeze(-1)
        return (g * da).to(ctx.dtypes[0]), (g * db).to(ctx.dtypes[1])


gradsmith_inputs = {"CosineDouble": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True))}
