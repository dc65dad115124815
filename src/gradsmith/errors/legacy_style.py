"""The Function was called as an object, as in PyTorch before 0.4

Cause
-----
`MyFunction()(x)` is how Functions were called when forward was an ordinary method. Today forward and backward are
static, and an object of the class cannot be called.

Remedy
------
Call `MyFunction.apply(x)`. Put `@staticmethod` before forward and backward, with ctx as first argument instead of
self.
"""

from __future__ import annotations

WORDINGS = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method",
)
RULES = ("GS110", "GS111")
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


Scale()(torch.randn(3, requires_grad=True))
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


Scale.apply(torch.randn(3, requires_grad=True))
"""
