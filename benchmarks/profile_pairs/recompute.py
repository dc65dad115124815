"""Backward computes tanh again, though the output is tanh."""

import torch

CAUSES = ("recomputed-saved",)


class SlowTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        t = torch.tanh(x)  # <-
        return grad_output - grad_output * t * t


class FastTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(grad_output, y)


slow, fast = SlowTanh, FastTanh


def inputs():
    return (torch.randn(512, 256, requires_grad=True),)
