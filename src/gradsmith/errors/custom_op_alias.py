"""A custom op returned one of its inputs, or a view of it

Cause
-----
The schema of the op says that its outputs are new tensors, and PyTorch relies on it when it reorders operations.

Remedy
------
Return a clone. Where the op is meant to write into an input, name it in `mutates_args` and return nothing.
"""

from __future__ import annotations

WORDINGS = (
    "must not also be an input to this custom operator and (2) may not alias any inputs to this custom operator or other returns",
)
RULES = ()
BAD = """
import torch
from torch import Tensor


@torch.library.custom_op("gradsmith_explains::twice_c", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x


twice(torch.randn(3))
"""
GOOD = """
import torch
from torch import Tensor


@torch.library.custom_op("gradsmith_explains::twice_d", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x.clone()


twice(torch.randn(3))
"""
