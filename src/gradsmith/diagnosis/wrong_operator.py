"""backward uses the wrong operator.

With another operator at one place the gradient is right: plus for minus, times for divided by, sum for mean, sin for cos.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.repair import repaired

RANK = 73
BAD = """
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x) / (1 + x * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (torch.cos(x) * (1 + x * x) + 2 * x * torch.sin(x)) / (1 + x * x) ** 2


gradsmith_inputs = {"Scaled": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    return repaired(case, "wrong-operator")
