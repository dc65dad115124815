"""Forward is vectorised, backward goes row by row."""

import torch

CAUSES = ("element-loop",)


class SlowNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.norm(dim=1, keepdim=True)
        y = x / norm
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, norm = ctx.saved_tensors
        grads = []
        for i in range(y.size(0)):  # <-
            g = grad_output[i]  # <-
            grads.append((g - y[i] * torch.dot(y[i], g)) / norm[i])  # <-
        return torch.stack(grads)


class FastNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.norm(dim=1, keepdim=True)
        y = x / norm
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, norm = ctx.saved_tensors
        return (grad_output - y * (y * grad_output).sum(1, keepdim=True)) / norm


slow, fast = SlowNorm, FastNorm


def inputs():
    return (torch.randn(200, 32, requires_grad=True),)
