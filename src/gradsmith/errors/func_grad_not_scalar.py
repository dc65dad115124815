"""torch.func.grad was given a function that returns more than one number

Cause
-----
The gradient is that of one number. For a function with several outputs there is a Jacobian instead.

Remedy
------
Reduce inside the function (`.sum()`), or use `torch.func.jacrev`, or `torch.func.vjp` with a gradient of the output.
"""

from __future__ import annotations

WORDINGS = (
    "Expected f(*args) to return a scalar Tensor, got tensor with ... dims. Maybe you wanted to use the vjp or jacrev APIs instead",
)
RULES = ()
BAD = """
import torch
torch.func.grad(torch.exp)(torch.randn(3))
"""
GOOD = """
import torch
torch.func.jacrev(torch.exp)(torch.randn(3))
"""
