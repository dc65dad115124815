"""A view taken under no_grad was written into where gradients are on

Cause
-----
It is unclear whether the write should be part of the graph: the view says no, the place of the write says yes.

Remedy
------
Put both under `torch.no_grad()`, or both outside.
"""

from __future__ import annotations

WORDINGS = ("A view was created in no_grad mode and is being modified inplace with grad mode enabled",)
RULES = ()
BAD = """
import torch
y = torch.randn(3, requires_grad=True).exp()
with torch.no_grad():
    view = y.view(3)
view.mul_(2)
"""
GOOD = """
import torch
y = torch.randn(3, requires_grad=True).exp()
view = y.view(3)
view.mul_(2)
"""
