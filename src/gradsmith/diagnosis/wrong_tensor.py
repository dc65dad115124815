"""backward uses the wrong tensor.

With another name at one place the gradient is right: the input where the output was meant, one saved tensor instead of
the other, an attribute of ctx taken for its neighbour.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.repair import repaired

RANK = 78
BAD = """
import torch


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * (1 - x * x)


gradsmith_inputs = {"Tanh": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    return repaired(case, "wrong-tensor")
