"""A floating mask kept for backward, against a bool one. About memory, not time."""

import torch

CAUSES = ("oversaved",)
MEMORY = True


class SlowDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        mask = (torch.rand_like(x) > p).float()  # <-
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - p)
        return x * mask * ctx.scale

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask * ctx.scale, None


class FastDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        mask = torch.rand_like(x) > p
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - p)
        return x * mask * ctx.scale

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask * ctx.scale, None


slow, fast = SlowDropout, FastDropout


def inputs():
    return torch.randn(256, 256, requires_grad=True), 0.5
