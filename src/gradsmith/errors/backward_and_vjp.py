"""The Function has both backward and vjp

Cause
-----
They are two names of one method. PyTorch does not choose.

Remedy
------
Delete one of them; backward is the usual name.
"""

from __future__ import annotations

WORDINGS = ("Implementing both 'backward' and 'vjp' for a custom Function is not allowed",)
RULES = ()
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def vjp(ctx, grad_output):
        return grad_output * 2


Scale.apply(torch.randn(3, requires_grad=True)).sum().backward()
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


Scale.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""
