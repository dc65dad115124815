"""A gradient of another size was assigned to .grad

Cause
-----
`x.grad = g` wants a gradient of the size of x.

Remedy
------
Sum over broadcast dimensions, or reshape, before assigning.
"""

from __future__ import annotations

WORDINGS = (
    "attempting to assign a gradient of size ... to a tensor of size ... Please ensure that the gradient and the tensor are the same size",
)
RULES = ()
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
x.grad = torch.ones(2)
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
x.grad = torch.ones_like(x)
"""
