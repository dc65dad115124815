"""A checkpointed function computed something else the second time

Cause
-----
Activation checkpointing runs forward again during backward. The second run saved tensors that differ from those of the first: it
depends on a counter, on a global, on random numbers drawn by NumPy or Python, or on autocast being off.

Remedy
------
Make the function depend on its arguments alone. Draw random numbers with torch, or pass them in.
"""

from __future__ import annotations

WORDINGS = (
    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass",
    "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation",
)
RULES = ("GS605",)
BAD = """
import torch
from torch.utils.checkpoint import checkpoint

calls = []


def growing(x):
    calls.append(x)
    return x[: 4 - len(calls)].exp()


x = torch.randn(3, requires_grad=True)
checkpoint(growing, x, use_reentrant=False).sum().backward()
"""
GOOD = """
import torch
from torch.utils.checkpoint import checkpoint

x = torch.randn(3, requires_grad=True)
checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
"""
