"""Looking for NaN in every call, against not looking."""

import torch

CAUSES = ("host-sync",)


class SlowExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if torch.isnan(x).any() or torch.isinf(x).any():  # <-
            raise ValueError("bad input")
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


class FastExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


slow, fast = SlowExp, FastExp


def inputs():
    return (torch.randn(512, 512, requires_grad=True),)
