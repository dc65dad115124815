"""Forward-mode differentiation met a Function without jvp

Cause
-----
`torch.func.jvp`, `jacfwd`, `hessian` and dual numbers push derivatives forward. A backward cannot be used for that.

Remedy
------
Add a static method `jvp(ctx, *tangents)` that returns one tangent per output. Or use reverse mode: jacrev instead of
jacfwd.
"""

from __future__ import annotations

WORDINGS = ("You must implement the jvp function for custom autograd.Function to use it with forward mode AD",)
RULES = ("GS608",)
BAD = """
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


x = torch.randn(3)
torch.func.jvp(Scale.apply, (x,), (x,))
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

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2


x = torch.randn(3)
torch.func.jvp(Scale.apply, (x,), (x,))
"""
