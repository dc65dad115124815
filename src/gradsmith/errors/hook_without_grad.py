"""A hook was registered on a tensor that does not require grad

Cause
-----
No gradient will ever pass there, so the hook would never run. Under `torch.no_grad()`, and inside a Function's
forward, no result requires grad.

Remedy
------
Register it on a tensor that is part of the graph; test `tensor.requires_grad` first.
"""

from __future__ import annotations

WORDINGS = ("cannot register a hook on a tensor that doesn't require gradient",)
RULES = ()
BAD = """
import torch
torch.ones(3).register_hook(print)
"""
GOOD = """
import torch
torch.ones(3, requires_grad=True).register_hook(print)
"""
