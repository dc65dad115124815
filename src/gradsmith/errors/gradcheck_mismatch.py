"""gradcheck measured a derivative that differs from what backward returns

Cause
-----
Backward is wrong for the input and output that are named, or the comparison is: inputs in float32, a corner at the
tested values, a surrogate gradient that is meant to differ.

Remedy
------
Run `gs.check` on the Function: it names the argument, the element and the kind of mistake, and proposes the line to
write.
"""

from __future__ import annotations

WORDINGS = (
    "Jacobian mismatch for output ... with respect to input ...",
    "The numerical gradients and analytical gradients should be equal",
)
RULES = ("GS201",)
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3


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
