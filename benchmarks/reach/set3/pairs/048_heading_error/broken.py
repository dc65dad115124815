import math

import torch


def wrap(angle):
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


class HeadingError(torch.autograd.Function):
    """Mean squared difference of two real headings in radians of one shape, taken the short way round."""

    @staticmethod
    def forward(ctx, pred, target):
        if pred.shape != target.shape:
            raise ValueError("one shape")
        ctx.save_for_backward(pred, target)
        return wrap(pred - target).square().mean()

    @staticmethod
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        g = 2 * grad * (pred - target) / pred.numel()
        return g, -g


gradsmith_inputs = {
    "HeadingError": lambda: (torch.rand(6, requires_grad=True), torch.rand(6, requires_grad=True))
}
