"""A tensor made in inference mode is needed for a gradient

Cause
-----
Tensors created under `torch.inference_mode()` carry no version counter, so autograd cannot save them for backward.

Remedy
------
Make it under `torch.no_grad()` instead, or clone it outside: `w = w.clone()`.
"""

from __future__ import annotations

WORDINGS = ("Inference tensors cannot be saved for backward",)
RULES = ()
BAD = """
import torch
with torch.inference_mode():
    weight = torch.ones(3)
torch.randn(3, requires_grad=True) * weight
"""
GOOD = """
import torch
with torch.no_grad():
    weight = torch.ones(3)
torch.randn(3, requires_grad=True) * weight
"""
