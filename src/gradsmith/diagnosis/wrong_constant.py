"""A number in backward is wrong.

With another number at one place the gradient is right: an exponent that was not reduced, a coefficient that was
forgotten.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.repair import repaired

RANK = 74
BAD = """
import torch


class Cubic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3 + x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (2 * x**2 + 1)


gradsmith_inputs = {"Cubic": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    return repaired(case, "wrong-constant")
