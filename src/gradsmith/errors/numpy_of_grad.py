"""NumPy was asked for a tensor that is part of a graph

Cause
-----
NumPy knows nothing of gradients. What it computes is outside the graph, so PyTorch wants to hear that this is meant.
Inside a Function's forward it is allowed; outside it is not.

Remedy
------
For plotting and printing write `x.detach().numpy()`. For a computation whose gradient is needed, use torch operations,
or put the NumPy part into a custom Function with a backward of its own.
"""

from __future__ import annotations

WORDINGS = ("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead",)
RULES = ("GS224",)
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
x.exp().numpy()
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
x.exp().detach().numpy()
"""
