"""A Function that computes the gradient of a constant kernel matrix as well, against asking needs_input_grad."""

import torch

CAUSES = ("wasted-gradient",)


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        return x @ kernel

    @staticmethod
    def backward(ctx, grad_output):
        x, kernel = ctx.saved_tensors
        return grad_output @ kernel.t(), x.t() @ grad_output  # <-


class Fast(Slow):
    @staticmethod
    def backward(ctx, grad_output):
        x, kernel = ctx.saved_tensors
        grad_kernel = x.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_output @ kernel.t(), grad_kernel


slow, fast = Slow.apply, Fast.apply


def inputs():
    return torch.randn(256, 192, requires_grad=True), torch.randn(192, 160)
