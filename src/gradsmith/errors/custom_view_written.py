"""The output of a custom Function is a view of its input, and was written into

Cause
-----
Forward returned its input as it is, or a view of it (`x.view(...)`, `x[...]`, `x.t()`). A later write (`y += 1`,
`relu_`) would replace the Function's own backward.

Remedy
------
Return a copy from forward (`x.clone()`), or do not write into the output. A Function that is meant to work in place
calls `ctx.mark_dirty(x)` and returns x.
"""

from __future__ import annotations

WORDINGS = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom backward",
)
RULES = ("GS204",)
BAD = """
import torch


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


y = Flat.apply(torch.randn(3, requires_grad=True))
y += 1
"""
GOOD = """
import torch


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1).clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


y = Flat.apply(torch.randn(3, requires_grad=True))
y += 1
"""
