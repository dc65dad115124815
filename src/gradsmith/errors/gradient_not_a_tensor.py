"""backward returned something that is not a tensor

Cause
-----
Each value that backward returns must be a tensor or None. A Python number, a NumPy array, or a tuple inside the tuple
is none of them.

Remedy
------
Return tensors: `torch.full_like(x, 2.0)` or `2.0 * grad_output`; unpack inner tuples with `*`.
"""

from __future__ import annotations

WORDINGS = ("expected Variable or None (got ...)",)
RULES = ("GS101",)
BAD = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return 2.0, None

x = torch.randn(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
"""
GOOD = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return 2.0 * grad_output, None

x = torch.randn(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
"""
