"""gradcheck was given no input that requires grad

Cause
-----
There is nothing to differentiate with respect to.

Remedy
------
Make the inputs with `requires_grad=True`, in float64.
"""

from __future__ import annotations

WORDINGS = (
    "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True",
)
RULES = ()
BAD = """
import torch
torch.autograd.gradcheck(torch.sin, torch.randn(3, dtype=torch.float64))
"""
GOOD = """
import torch
torch.autograd.gradcheck(torch.sin, torch.randn(3, dtype=torch.float64, requires_grad=True))
"""
