"""backward reads something from ctx that forward did not put there

Cause
-----
The object named `...Backward` in the message is ctx. Forward did not set this attribute, or only on a branch that was
not taken, or it is misspelled.

Remedy
------
Set it in forward (or setup_context) on every path: `ctx.factor = factor`.
"""

from __future__ import annotations

WORDINGS = ("Backward' object has no attribute",)
SEEN = ("Backward' object",)
RULES = ()
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor


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
