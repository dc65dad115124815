"""requires_grad was changed on a tensor that was computed from others

Cause
-----
A result requires grad because something it was made of does. That cannot be turned off on the result.

Remedy
------
Use `y.detach()` for a version without gradient, or compute it under `torch.no_grad()`. To freeze a layer, set
`requires_grad` on its parameters.
"""

from __future__ import annotations

WORDINGS = ("you can only change requires_grad flags of leaf variables",)
RULES = ()
BAD = """
import torch
y = torch.randn(3, requires_grad=True).exp()
y.requires_grad = False
"""
GOOD = """
import torch
y = torch.randn(3, requires_grad=True).exp()
y = y.detach()
"""
