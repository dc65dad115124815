"""A function that torch.func transforms writes into a tensor from outside

Cause
-----
A running mean, a cache or a buffer is updated in place. Under grad, vjp or jvp the new value belongs to the transform
and must not leak.

Remedy
------
Pass the tensor in and return the new one (`has_aux=True` carries it out). For batch norm use
`torch.func.replace_all_batch_norm_modules_`.
"""

from __future__ import annotations

WORDINGS = ("the function provided attempted to call in-place operation ... that would mutate a captured Tensor",)
RULES = ()
BAD = """
import torch
mean = torch.zeros(3)
torch.func.grad(lambda x: mean.copy_(x).sum())(torch.randn(3))
"""
GOOD = """
import torch
torch.func.grad(lambda x: (x.sum(), x.detach()), has_aux=True)(torch.randn(3))
"""
