"""A tensor that backward needs was overwritten after forward had saved it

Cause
-----
Some operation, or a custom Function, saved a tensor for backward. Something then wrote into that tensor or into a view
of it (`+=`, `relu_`, `x[0] = ...`, an optimizer step). The saved value is gone, so PyTorch refuses to compute a wrong
gradient.

Remedy
------
Replace the write by an operation that makes a new tensor (`y = y + 1` instead of `y += 1`), or write into a clone. A
Function that changes its own input must call `ctx.mark_dirty`. Where the write is in a backward, clone the saved
tensor first.
"""

from __future__ import annotations

WORDINGS = ("one of the variables needed for gradient computation has been modified by an inplace operation",)
RULES = ("GS203", "GS204")
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
y = x.exp()
y = y + 1
y.sum().backward()
"""
