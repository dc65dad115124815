"""A gradient was asked for a tensor that the output does not depend on

Cause
-----
`torch.autograd.grad` was given an input that took no part in the computation, or whose part was cut off: a copy was
used instead, a Function took it inside a list, or read it from outside its arguments.

Remedy
------
Differentiate with respect to the very tensor that was used. Pass tensors to `apply` directly, never in a list or
through a closure. Where the input may really be unused, pass `allow_unused=True` and expect None.
"""

from __future__ import annotations

WORDINGS = (
    "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True",
    "The differentiated Tensor at index ... appears to not have been used in the graph. Set allow_unused=True",
)
RULES = ("GS207", "GS208")
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
weight = torch.randn(3, requires_grad=True)
torch.autograd.grad(x.sum(), (x, weight))
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
weight = torch.randn(3, requires_grad=True)
torch.autograd.grad((x * weight).sum(), (x, weight))
"""
