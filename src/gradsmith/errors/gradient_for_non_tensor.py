"""backward returned a gradient for an argument that is not a tensor

Cause
-----
The argument at that position (counted from 1) was a number, a string or None when forward was called. It cannot
receive a gradient.

Remedy
------
Return None at that position. Where the number should be learned, pass it as a tensor that requires grad.
"""

from __future__ import annotations

WORDINGS = (
    "returned a gradient different than None at position ..., but the corresponding forward input was not a Variable",
)
RULES = ("GS108",)
BAD = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, grad_output

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
