"""requires_grad_() was called inside a function that torch.func transforms

Cause
-----
torch.func keeps its own account of what is differentiated. Code that calls `requires_grad_()`,
`torch.autograd.functional` or a backward of its own inside does not fit in.

Remedy
------
Call `torch.func.grad` or `vjp` inside instead, or take that part out of the transformed function.
"""

from __future__ import annotations

WORDINGS = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a function being transformed by a functorch transform",
)
RULES = ("GS601",)
BAD = """
import torch
torch.func.grad(lambda x: x.requires_grad_().sum())(torch.randn(3))
"""
GOOD = """
import torch
torch.func.grad(lambda x: x.sum())(torch.randn(3))
"""
