"""An optimizer was given a tensor that was computed from others

Cause
-----
An optimizer changes leaves: parameters that receive a `.grad`. `nn.Parameter(w) * 0.1` and `torch.randn(3,
requires_grad=True).to(device)` are results, not leaves.

Remedy
------
Create it with its final value first, then ask for gradients: `(torch.randn(3) * 0.1).requires_grad_()`.
"""

from __future__ import annotations

WORDINGS = ("can't optimize a non-leaf Tensor",)
RULES = ()
BAD = """
import torch
torch.optim.SGD([torch.randn(3, requires_grad=True) * 0.1])
"""
GOOD = """
import torch
torch.optim.SGD([(torch.randn(3) * 0.1).requires_grad_()])
"""
