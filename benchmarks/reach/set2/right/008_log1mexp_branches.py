import math

import torch


class Log1mExp(torch.autograd.Function):
    """log(1 - exp(x)) for x < 0, accurate near zero and far below."""

    @staticmethod
    def forward(ctx, x):
        if (x >= 0).any():
            raise ValueError("log1mexp needs x < 0")
        ctx.save_for_backward(x)
        near = x > -math.log(2)
        return torch.where(near, torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return -grad_output / torch.expm1(-x)


gradsmith_inputs = {"Log1mExp": lambda: ((-torch.rand(6, dtype=torch.float64) * 3 - 0.05).requires_grad_(),)}
