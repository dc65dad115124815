"""Two tensors of different dtypes meet in an operation that converts neither

Cause
-----
Matrix products, scatter and index operations want one dtype. In a custom Function this is often a weight in float64
next to a float32 gradient, or autocast: forward ran in half precision and backward does not.

Remedy
------
Convert one of them (`a.to(b.dtype)`). Decorate forward and backward with `torch.amp.custom_fwd` and `custom_bwd` where
the Function runs under autocast.
"""

from __future__ import annotations

WORDINGS = (
    "expected m1 and m2 to have the same dtype, but got: ... != ...",
    "mat1 and mat2 must have the same dtype, but got ... and ...",
    "expected scalar type ... but found ...",
    "must have the same scalar type",
    "expected both vectors to have same dtype, but found ... and ...",
    "Expected self.dtype to be equal to src.dtype",
)
RULES = ("GS602",)
BAD = """
import torch
torch.randn(2, 2) @ torch.randn(2, 2, dtype=torch.float64)
"""
GOOD = """
import torch
torch.randn(2, 2) @ torch.randn(2, 2, dtype=torch.float64).to(torch.float32)
"""
