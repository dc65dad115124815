"""save_for_backward was given something that is not a tensor

Cause
-----
`ctx.save_for_backward` takes tensors and None. Numbers, shapes, lists and modules are kept in another way.

Remedy
------
Keep them as attributes: `ctx.factor = factor`. Save lists with a star: `ctx.save_for_backward(*tensors)`.
"""

from __future__ import annotations

WORDINGS = ("save_for_backward can only save variables, but argument ... is of type ...",)
RULES = ("GS105",)
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor


Scale.apply(torch.randn(3, requires_grad=True), 2)
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor


Scale.apply(torch.randn(3, requires_grad=True), 2)
"""
