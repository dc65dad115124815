"""A tensor that requires grad was written into, and it is where the graph begins

Cause
-----
A leaf (a parameter, or a tensor made with `requires_grad=True`) receives the gradient. Were it overwritten in the
graph, it would be no leaf any more. A custom Function that calls `ctx.mark_dirty` on a leaf gets the same error.

Remedy
------
Update parameters under `torch.no_grad()`. In a computation make a new tensor, or write into a clone. In tests of a
Function that works in place, pass `x.clone()`.
"""

from __future__ import annotations

WORDINGS = (
    "a leaf Variable that requires grad is being used in an in-place operation",
    "a leaf Variable that requires grad has been used in an in-place operation",
)
RULES = ("GS204",)
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
x += 1
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
with torch.no_grad():
    x += 1
"""
