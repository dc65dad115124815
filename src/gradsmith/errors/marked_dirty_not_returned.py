"""An input was marked dirty but not returned

Cause
-----
`ctx.mark_dirty(x)` says: this Function writes into x, and gives it back. What is marked must be among the outputs, as
the same tensor.

Remedy
------
Return x itself, not a copy of it or a result made from it. Mark only what forward writes into.
"""

from __future__ import annotations

WORDINGS = ("Some elements marked as dirty during the forward method were not returned as output",)
RULES = ("GS120",)
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x + 1

    @staticmethod
    def backward(ctx, *grad_outputs):
        return grad_outputs[0] * 2


Double.apply(torch.randn(3, requires_grad=True).exp())
"""
GOOD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, *grad_outputs):
        return grad_outputs[0] * 2


Double.apply(torch.randn(3, requires_grad=True).exp())
"""
