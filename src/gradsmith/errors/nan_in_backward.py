"""Anomaly detection found a backward that returns nan

Cause
-----
The derivative is infinite or undefined at the values of forward: sqrt or norm at 0, log of 0, a division by 0. A
factor 0 from above turns infinity into nan, even behind `torch.where`.

Remedy
------
Keep the bad value out of the operation itself: `torch.where(x > 0, x, 1).sqrt()` before choosing the result with a
second where, or add an epsilon under the root.
"""

from __future__ import annotations

WORDINGS = ("returned nan values in its ...th output",)
RULES = ()
BAD = """
import torch
with torch.autograd.set_detect_anomaly(True):
    x = torch.zeros(3, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
"""
GOOD = """
import torch
with torch.autograd.set_detect_anomaly(True):
    x = torch.zeros(3, requires_grad=True)
    ((x + 1e-6).sqrt() * 0).sum().backward()
"""
