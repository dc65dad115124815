"""A Function that returns a gradient for a running mean that never needs one, against None."""

import torch

CAUSES = ("wasted-gradient",)


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean, weight):
        centred = x - mean
        ctx.save_for_backward(centred, weight)
        return centred @ weight

    @staticmethod
    def backward(ctx, grad_output):
        centred, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t()
        grad_mean = -(grad_output @ weight.t()).sum(0)  # <-
        return grad_x, grad_mean, centred.t() @ grad_output


class Fast(Slow):
    @staticmethod
    def backward(ctx, grad_output):
        centred, weight = ctx.saved_tensors
        return grad_output @ weight.t(), None, centred.t() @ grad_output


slow, fast = Slow.apply, Fast.apply


def inputs():
    return torch.randn(256, 128, requires_grad=True), torch.randn(128), torch.randn(128, 128, requires_grad=True)
