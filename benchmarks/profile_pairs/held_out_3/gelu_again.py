"""A tanh GELU whose backward computes the inner tanh again, against saving it in place of nothing."""

import torch

CAUSES = ("recomputed-saved", "slower-than-autograd")
_C = 0.7978845608


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        inner = torch.tanh(_C * x)
        ctx.save_for_backward(x, inner)
        return 0.5 * x * (1 + inner)

    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_tensors
        inner = torch.tanh(_C * x)  # <-
        return grad_output * 0.5 * (1 + inner + x * _C * (1 - inner * inner))


class Fast(Slow):
    @staticmethod
    def backward(ctx, grad_output):
        x, inner = ctx.saved_tensors
        return grad_output * 0.5 * (1 + inner + x * _C * (1 - inner * inner))


slow, fast = Slow.apply, Fast.apply


def inputs():
    return (torch.randn(384, 384, requires_grad=True),)
