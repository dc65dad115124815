"""vmap met an operation whose output size depends on values

Cause
-----
`x[mask]`, `nonzero` and `unique` return as many elements as there are; under vmap that could differ from one element
of the batch to the next.

Remedy
------
Keep the size fixed: `torch.where(mask, x, 0)` instead of `x[mask]`.
"""

from __future__ import annotations

WORDINGS = ("vmap: We do not support batching operators that can support dynamic shape",)
RULES = ()
BAD = """
import torch
torch.func.vmap(lambda x: x[x > 0].sum())(torch.randn(3, 2))
"""
GOOD = """
import torch
torch.func.vmap(lambda x: torch.where(x > 0, x, 0).sum())(torch.randn(3, 2))
"""
