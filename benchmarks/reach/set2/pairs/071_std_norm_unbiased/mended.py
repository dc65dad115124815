import torch
from torch.autograd.function import once_differentiable


class Standardize(torch.autograd.Function):
    """(x - mean) / std over the last dimension, unbiased std."""

    @staticmethod
    def forward(ctx, x):
        std = x.std(-1, keepdim=True)
        y = (x - x.mean(-1, keepdim=True)) / std
        ctx.save_for_backward(y, std)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        y, std = ctx.saved_tensors
        g = grad_output
        proj = y * (g * y).sum(-1, keepdim=True) / (y.size(-1) - 1)
        return (g - g.mean(-1, keepdim=True) - proj) / std


gradsmith_inputs = {"Standardize": lambda: (torch.randn(3, 5, dtype=torch.float64, requires_grad=True),)}
