"""backward() was called inside a function that torch.func transforms

Cause
-----
vmap and grad of torch.func cannot fill `.grad` of a tensor from inside.

Remedy
------
Call `torch.func.grad` or `torch.func.vjp` inside, and return the gradient.
"""

from __future__ import annotations

WORDINGS = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead",
)
RULES = ()
BAD = """
import torch
torch.func.vmap(lambda x: x.square().sum().backward())(torch.randn(3, requires_grad=True))
"""
GOOD = """
import torch
torch.func.vmap(torch.func.grad(lambda x: x.square().sum()))(torch.randn(3))
"""
