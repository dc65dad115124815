"""Two tensors on different devices meet in one operation

Cause
-----
Often a tensor is created inside forward or backward without a device (`torch.zeros(3)` lives on the CPU), or a
constant was not moved with the module. The wording for CPU and GPU could not be produced on a machine without a GPU.

Remedy
------
Create it where its partner lives: `torch.zeros(3, device=x.device)`, `x.new_zeros(3)`, `torch.zeros_like(x)`. Register
constants of a module with `register_buffer`.
"""

from __future__ import annotations

WORDINGS = (
    "Tensor on device ... is not on the expected device ...",
    "Expected all tensors to be on the same device, but found at least two devices",
)
RULES = ()
BAD = """
import torch
torch.randn(3) + torch.empty(3, device="meta")
"""
GOOD = """
import torch
x = torch.randn(3)
x + torch.empty(3, device=x.device)
"""
