"""A Function writes into a view and returns more than one tensor

Cause
-----
The input that forward writes into is a view of another tensor. PyTorch then has to rewrite the graph of that tensor,
and can do so for a single output only.

Remedy
------
Clone the input before the call, or split the Function: one that writes and returns one tensor, one for the rest.
"""

from __future__ import annotations

WORDINGS = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor",
)
RULES = ("GS204",)
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x + 1

    @staticmethod
    def backward(ctx, *grad_outputs):
        return grad_outputs[0] * 2


Double.apply(torch.randn(3, requires_grad=True).exp().view(3))
"""
GOOD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x + 1

    @staticmethod
    def backward(ctx, *grad_outputs):
        return grad_outputs[0] * 2


Double.apply(torch.randn(3, requires_grad=True).exp().view(3).clone())
"""
