"""A gradient was asked for a tensor that does not require grad

Cause
-----
One of the `inputs` of `torch.autograd.grad` has `requires_grad=False`. Inside a backward this happens with
`ctx.saved_tensors` of inputs that do not require grad, and with detached copies.

Remedy
------
Call `requires_grad_()` on it before the computation, not after. Inside a backward: `x = x.detach().requires_grad_()`,
then compute under `torch.enable_grad()`.
"""

from __future__ import annotations

WORDINGS = ("One of the differentiated Tensors does not require grad",)
RULES = ("GS114",)
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
scale = torch.ones(3)
torch.autograd.grad((x * scale).sum(), (x, scale))
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
scale = torch.ones(3, requires_grad=True)
torch.autograd.grad((x * scale).sum(), (x, scale))
"""
