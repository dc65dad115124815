"""Backward was called on a tensor with more than one element

Cause
-----
Backward starts from the gradient of a loss. For a single number that gradient is 1; for a larger tensor PyTorch cannot
know it.

Remedy
------
Reduce to one number first (`y.sum().backward()`, `y.mean().backward()`), or say the gradient:
`y.backward(torch.ones_like(y))`.
"""

from __future__ import annotations

WORDINGS = ("grad can be implicitly created only for scalar outputs",)
RULES = ()
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
x.exp().backward()
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
x.exp().sum().backward()
"""
