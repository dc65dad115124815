"""backward takes more or fewer gradients than forward has outputs

Cause
-----
Backward is called with ctx and one gradient per output of forward, also for outputs that nobody used.

Remedy
------
Give backward one parameter per output after ctx, or `*grad_outputs`.
"""

from __future__ import annotations

WORDINGS = (
    ".backward() takes ... positional arguments but ... were given",
    ".backward() missing ... required positional argument",
)
RULES = ("GS104",)
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


Scale.apply(torch.randn(3, requires_grad=True))[0].sum().backward()
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, grad_a, grad_b):
        return grad_a * 2 + grad_b * 3


Scale.apply(torch.randn(3, requires_grad=True))[0].sum().backward()
"""
