import math

import torch
from torch.autograd.function import once_differentiable


class Sinc(torch.autograd.Function):
    """sin(pi x) / (pi x), 1 at 0; real x."""

    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise ValueError("real x only")
        ctx.save_for_backward(x)
        return torch.sinc(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        small = x.abs() < 0.1
        safe = torch.where(small, torch.ones_like(x), x)
        slope = (torch.cos(math.pi * safe) - torch.sinc(safe)) / safe
        u = math.pi * x
        slope = torch.where(small, math.pi * u * (-1 / 3 + u**2 / 30 - u**4 / 840 + u**6 / 45360), slope)
        return grad * slope


gradsmith_inputs = {"Sinc": lambda: (torch.randn(7, requires_grad=True),)}
