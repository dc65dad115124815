"""vmap met an operation that draws random numbers

Cause
-----
It is unclear whether every element of the batch should get its own numbers, or all of them the same.

Remedy
------
Say which: `vmap(f, randomness="different")` or `"same"`. Or draw outside and pass the numbers in.
"""

from __future__ import annotations

WORDINGS = ("vmap: called random operation while in randomness error mode",)
RULES = ()
BAD = """
import torch
torch.func.vmap(lambda x: x * torch.rand(()))(torch.randn(3))
"""
GOOD = """
import torch
torch.func.vmap(lambda x: x * torch.rand(()), randomness="different")(torch.randn(3))
"""
