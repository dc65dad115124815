"""A part of a tensor that requires grad was written into, and the whole is where the graph begins

Cause
-----
`x[0] = ...` or `x.view(...).add_(...)` writes into memory of a leaf, through a view of it.

Remedy
------
Initialise parameters under `torch.no_grad()`. In a computation write into `x.clone()`, or use `torch.where`,
`torch.cat` or `index_put` (without underscore).
"""

from __future__ import annotations

WORDINGS = ("a view of a leaf Variable that requires grad is being used in an in-place operation",)
RULES = ("GS204",)
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
x[0] = 1.0
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
y = x.clone()
y[0] = 1.0
y.sum().backward()
"""
