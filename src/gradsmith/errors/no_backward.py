"""The Function has no backward

Cause
-----
Backward reached a Function that defines neither backward nor vjp. Check the spelling, and whether it is indented into
the class.

Remedy
------
Write `backward(ctx, *grad_outputs)`. Where no gradient is meant to flow, mark the output with
`ctx.mark_non_differentiable`, or return None for each input.
"""

from __future__ import annotations

WORDINGS = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD",
)
RULES = ()
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


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
