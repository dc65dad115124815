"""The gradient is right for some elements and wrong for others, and nothing chooses between them.

Neither forward nor backward has a mask or a comparison. Usual causes: the first or the last step of a loop or a shift is left
out, one of several parts of the input gets the gradient of another, or a dimension is broadcast that should not be.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.mask import is_partly_right, partly

RANK = 91
NAMES_A_MISTAKE = False
BAD = """
import torch


class Differences(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[1:] - x[:-1]

    @staticmethod
    def backward(ctx, grad_output):
        above = torch.cat([grad_output[:1], grad_output])
        below = torch.cat([grad_output, grad_output[:1]])
        return above - below


gradsmith_inputs = {"Differences": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    found = partly(case)
    if found is None:
        return None
    advice = f"Look at the step of backward that computes these elements of the gradient of '{case.name}'."
    return Fit(found[1], advice, partly_right=is_partly_right(case))
