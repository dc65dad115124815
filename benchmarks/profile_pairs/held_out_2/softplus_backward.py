"""A softplus whose backward calls sigmoid although forward has computed and could have kept it, against keeping it."""

import torch

CAUSES = ("recomputed-saved", "slower-than-autograd")


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        gate = torch.sigmoid(x)
        return x * gate

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)  # <-
        return grad_output * (gate + x * gate * (1 - gate))


class Fast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        y = x * gate
        ctx.save_for_backward(gate, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        gate, y = ctx.saved_tensors
        return grad_output * (gate + y * (1 - gate))


slow, fast = Slow.apply, Fast.apply


def inputs():
    return (torch.randn(512, 512, requires_grad=True),)
