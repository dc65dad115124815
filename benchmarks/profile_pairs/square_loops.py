"""Squaring by two nested loops, against x * x."""

import torch

CAUSES = ("element-loop",)


class SlowSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.zeros_like(x)
        for i in range(x.shape[0]):  # <-
            for j in range(x.shape[1]):  # <-
                out[i, j] = x[i, j] * x[i, j]  # <-
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class FastSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


slow, fast = SlowSquare, FastSquare


def inputs():
    return (torch.randn(32, 32, requires_grad=True),)
