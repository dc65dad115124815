"""Clones to be on the safe side."""

import torch

CAUSES = ("needless-copy",)


class SlowMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x.clone(), w.clone())  # <-
        return x * w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        grad = grad_output.clone()  # <-
        return grad * w, grad * x


class FastMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output * w, grad_output * x


slow, fast = SlowMul, FastMul


def inputs():
    return torch.randn(512, 512, requires_grad=True), torch.randn(512, 512, requires_grad=True)
