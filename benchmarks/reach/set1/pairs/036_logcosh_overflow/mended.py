import math

import torch


class LogCosh(torch.autograd.Function):
    """Stable log(cosh(x)), mean over all elements."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = x.abs()
        return (a + torch.log1p(torch.exp(-2 * a)) - math.log(2.0)).mean()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = torch.tanh(x)
        return grad * slope / x.numel()


gradsmith_inputs = {"LogCosh": lambda: (torch.randn(10, requires_grad=True),)}
