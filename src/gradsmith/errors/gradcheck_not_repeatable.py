"""gradcheck got two different gradients from one backward

Cause
-----
Backward draws random numbers, depends on state that changes from call to call, or writes into something that it reads.

Remedy
------
Draw in forward and save what was drawn. Keep state on ctx, not on the class. Where only the order of additions varies,
pass `nondet_tol`.
"""

from __future__ import annotations

WORDINGS = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values",
)
RULES = ("GS215", "GS220")
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2 + 1e-9 * torch.rand(3)


torch.autograd.gradcheck(Scale.apply, torch.randn(3, dtype=torch.float64, requires_grad=True))
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


torch.autograd.gradcheck(Scale.apply, torch.randn(3, dtype=torch.float64, requires_grad=True))
"""
