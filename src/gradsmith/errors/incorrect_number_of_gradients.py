"""backward returned more or fewer gradients than forward has inputs

Cause
-----
PyTorch wants one value for each argument that was passed to `apply`, ctx not counted, in the same order. Arguments
that are not tensors count, too. A list counts as one value: return a tuple.

Remedy
------
Return one value per argument of forward, None for those without a gradient: `return grad_x, None`.
"""

from __future__ import annotations

WORDINGS = ("returned an incorrect number of gradients (expected ..., got ...)",)
RULES = ("GS101", "GS102")
BAD = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor

x = torch.randn(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
"""
GOOD = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None

x = torch.randn(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
"""
