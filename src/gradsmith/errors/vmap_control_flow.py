"""vmap met an `if` or `while` on a tensor

Cause
-----
Under vmap one tensor stands for a whole batch, and each element might take another branch.

Remedy
------
Compute both branches and choose with `torch.where(condition, a, b)`. Keep `if` for Python numbers, shapes and options.
"""

from __future__ import annotations

WORDINGS = ("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow",)
RULES = ("GS604",)
BAD = """
import torch
torch.func.vmap(lambda x: x if x > 0 else -x)(torch.randn(3))
"""
GOOD = """
import torch
torch.func.vmap(lambda x: torch.where(x > 0, x, -x))(torch.randn(3))
"""
