"""A gating Function that clones what it saves and what it returns, against neither."""

import torch

CAUSES = ("needless-copy",)


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x.clone(), gate.clone())  # <-
        return (x * gate).clone()  # <-

    @staticmethod
    def backward(ctx, grad_output):
        x, gate = ctx.saved_tensors
        return (grad_output * gate).clone(), (grad_output * x).clone()  # <-


class Fast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad_output):
        x, gate = ctx.saved_tensors
        return grad_output * gate, grad_output * x


slow, fast = Slow.apply, Fast.apply


def inputs():
    return torch.randn(256, 256, requires_grad=True), torch.rand(256, 256, requires_grad=True)
