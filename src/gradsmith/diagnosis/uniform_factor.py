"""The gradient is off by one number at every element.

The number is neither 2 nor a size nor an option of forward, so it is probably a constant of the formula: one that was rounded,
forgotten, or copied from another formula.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.factor import uniform

RANK = 79
BAD = """
import math

import torch


class NormalCdf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.special.ndtr(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(-0.5 * x * x) / math.pi


gradsmith_inputs = {"NormalCdf": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    factor = uniform(case)
    if factor is None:
        return None
    other = case.another
    if other is not None and not other.matches(other.claimed, factor * other.truth):
        return None
    return Fit(
        f"is {factor:.6g} times the true one at every element",
        f"Look for a constant in the gradient of '{case.name}' that is off by this factor.",
    )
