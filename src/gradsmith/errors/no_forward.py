"""The Function has no forward

Cause
-----
`apply` was called on a class that defines no forward. Check the spelling, and whether it is indented into the class.

Remedy
------
Write a static method `forward(ctx, ...)`, or `forward(...)` together with `setup_context`.
"""

from __future__ import annotations

WORDINGS = ("You must implement the forward function for custom autograd.Function",)
RULES = ()
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forwards(ctx, x):
        return x * 2


Scale.apply(torch.randn(3, requires_grad=True))
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
