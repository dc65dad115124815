"""Fine-tuning an adapter: the gradient of a frozen convolution's weight is computed all the same."""

import torch
import torch.nn.functional as F
from torch.nn.grad import conv2d_input, conv2d_weight

CAUSES = ("wasted-gradient",)


class SlowConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight, padding=1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = conv2d_input(x.shape, weight, grad_output, padding=1)
        grad_weight = conv2d_weight(x, weight.shape, grad_output, padding=1)  # <-
        return grad_x, grad_weight  # <-


class FastConv(SlowConv):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = conv2d_input(x.shape, weight, grad_output, padding=1)
        if ctx.needs_input_grad[1]:
            grad_weight = conv2d_weight(x, weight.shape, grad_output, padding=1)
        return grad_x, grad_weight


slow, fast = SlowConv, FastConv


def inputs():
    return torch.randn(4, 16, 24, 24, requires_grad=True), torch.randn(16, 16, 3, 3)
