"""A first layer whose input needs no gradient."""

import torch

CAUSES = ("wasted-gradient",)


class SlowLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w, grad_output.t() @ x  # <-


class FastLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        grad_x = grad_output @ w if ctx.needs_input_grad[0] else None
        grad_w = grad_output.t() @ x if ctx.needs_input_grad[1] else None
        return grad_x, grad_w


slow, fast = SlowLinear, FastLinear


def inputs():
    return torch.randn(256, 320), torch.randn(256, 320, requires_grad=True)
