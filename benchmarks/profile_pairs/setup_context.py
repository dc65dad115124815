"""A small Function with setup_context called once per step, against ctx in forward."""

import torch

CAUSES = ("call-overhead",)


class SplitScale(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return x * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output * w, grad_output * x


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output * w, grad_output * x


def slow(x, w):
    for _ in range(64):
        x = SplitScale.apply(x, w)  # <-
    return x


def fast(x, w):
    for _ in range(64):
        x = Scale.apply(x, w)
    return x


def inputs():
    return torch.randn(8, requires_grad=True), torch.rand(8, requires_grad=True)
