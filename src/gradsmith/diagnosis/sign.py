"""The sign is wrong.

Every element has the right size and the wrong sign: training climbs instead of descending along this input. Usual causes:
a subtraction the wrong way round, a derivative of 1 / x or of cos without its minus.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit

RANK = 20
BAD = """
import torch


class Reciprocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1 / x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (x * x)


gradsmith_inputs = {"Reciprocal": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    if not case.explains(-case.claimed):
        return None
    return Fit("has the wrong sign", f"Negate what backward returns for '{case.name}'.")
