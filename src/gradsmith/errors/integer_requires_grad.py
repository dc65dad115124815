"""A tensor of integers was asked to require grad

Cause
-----
Only floating point and complex tensors have derivatives. `torch.tensor([1, 2])` and `torch.arange(3)` are integers.

Remedy
------
Make it floating point (`torch.tensor([1.0, 2.0])`, `.float()`) before `requires_grad_()`. An index needs no gradient:
leave it as it is.
"""

from __future__ import annotations

WORDINGS = (
    "only Tensors of floating point and complex dtype can require gradients",
    "only Tensors of floating point dtype can require gradients",
)
RULES = ("GS230",)
BAD = """
import torch
x = torch.tensor([1, 2, 3], requires_grad=True)
"""
GOOD = """
import torch
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
"""
