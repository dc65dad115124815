"""torch.func cannot use a Function whose forward takes ctx

Cause
-----
vmap, grad, jacrev and jvp of torch.func need forward without ctx, and what ctx keeps in a method of its own.

Remedy
------
Split forward in two: `forward(x)` computes, `setup_context(ctx, inputs, output)` saves. Backward stays as it is.
"""

from __future__ import annotations

WORDINGS = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context staticmethod",
)
RULES = ("GS601",)
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


torch.func.grad(lambda x: Scale.apply(x).sum())(torch.randn(3))
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


torch.func.grad(lambda x: Scale.apply(x).sum())(torch.randn(3))
"""
