"""vmap met `.item()` or a conversion to a Python number

Cause
-----
Under vmap one tensor stands for a whole batch, so there is no single number to take out.

Remedy
------
Keep it a tensor: most operations take a 0-dimensional tensor where they take a number.
"""

from __future__ import annotations

WORDINGS = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor",
)
RULES = ("GS604",)
BAD = """
import torch
torch.func.vmap(lambda x: x * x.item())(torch.randn(3))
"""
GOOD = """
import torch
torch.func.vmap(lambda x: x * x)(torch.randn(3))
"""
