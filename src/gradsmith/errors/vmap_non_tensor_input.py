"""vmap was told to batch an argument that is not a tensor

Cause
-----
By default vmap batches every argument along dimension 0. A number, string or module has no dimension.

Remedy
------
Say None for that argument: `vmap(f, in_dims=(0, None))`.
"""

from __future__ import annotations

WORDINGS = (
    "Got in_dim=... for an input but the input is of type ... We cannot vmap over non-Tensor arguments, please use None as the respective in_dim",
)
RULES = ()
BAD = """
import torch
torch.func.vmap(lambda x, factor: x * factor)(torch.randn(3), 2.0)
"""
GOOD = """
import torch
torch.func.vmap(lambda x, factor: x * factor, in_dims=(0, None))(torch.randn(3), 2.0)
"""
