"""backward computes with a gradient that is None

Cause
-----
An output that the loss does not depend on has the gradient None where `ctx.set_materialize_grads(False)` was called,
and in hooks.

Remedy
------
Test for None first, or leave out `set_materialize_grads(False)`: then PyTorch fills in zeros.
"""

from __future__ import annotations

WORDINGS = ("unsupported operand type(s) for ...: ... 'NoneType'",)
SEEN = ("in backward",)
RULES = ("GS109",)
BAD = """
import torch


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, grad_a, grad_b):
        return grad_a * 2 + grad_b * 3


a, b = Both.apply(torch.randn(3, requires_grad=True))
a.sum().backward()
"""
GOOD = """
import torch


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, grad_a, grad_b):
        return sum(g * k for g, k in ((grad_a, 2), (grad_b, 3)) if g is not None)


a, b = Both.apply(torch.randn(3, requires_grad=True))
a.sum().backward()
"""
