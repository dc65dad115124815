"""A second derivative was asked of a compiled function

Cause
-----
torch.compile makes forward and backward ahead of time, and no backward of the backward.

Remedy
------
Compute the second derivative in eager mode, or compile a function that contains the first derivative: `torch.compile`
of what calls `torch.func.grad`.
"""

from __future__ import annotations

WORDINGS = ("torch.compile with aot_autograd does not currently support double backward",)
RULES = ("GS603",)
BAD = """
import torch
cube = torch.compile(lambda x: (x**3).sum(), backend="aot_eager")
x = torch.randn(3, requires_grad=True)
(slope,) = torch.autograd.grad(cube(x), x, create_graph=True)
slope.sum().backward()
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
(slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
slope.sum().backward()
"""
