"""Backward met a custom op without a formula for its gradient

Cause
-----
The op was made with `torch.library.custom_op`, and nothing was registered for its backward.

Remedy
------
Call `register_autograd(backward, setup_context=...)` on the op.
"""

from __future__ import annotations

WORDINGS = (
    "Trying to backward through ... but no autograd formula was registered. Please use register_autograd to add one",
)
RULES = ()
BAD = """
import torch
from torch import Tensor


@torch.library.custom_op("gradsmith_explains::twice_a", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2


twice(torch.randn(3, requires_grad=True)).sum().backward()
"""
GOOD = """
import torch
from torch import Tensor


@torch.library.custom_op("gradsmith_explains::twice_b", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2


twice.register_autograd(lambda ctx, grad_output: grad_output * 2)
twice(torch.randn(3, requires_grad=True)).sum().backward()
"""
