"""A hook returned a gradient of another size

Cause
-----
A hook may replace the gradient that passes, but only by one of the same size.

Remedy
------
Return a tensor of the same shape (zeros where nothing should pass), or return nothing to leave it as it is.
"""

from __future__ import annotations

WORDINGS = ("hook ... has changed the size of value",)
RULES = ("GS226",)
BAD = """
import torch
y = torch.randn(3, requires_grad=True).exp()
y.register_hook(lambda grad: grad[:1])
y.sum().backward()
"""
GOOD = """
import torch
y = torch.randn(3, requires_grad=True).exp()
y.register_hook(lambda grad: grad.clamp(max=1))
y.sum().backward()
"""
