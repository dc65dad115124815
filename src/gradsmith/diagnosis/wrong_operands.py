"""The operands of a product or difference are the wrong way round, or one is not transposed.

Matrix products do not commute: with the operands exchanged, or one of them transposed, the gradient is right.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.repair import repaired

RANK = 72
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return y.t() @ grad_output, x.t() @ grad_output


def example():
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 4, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""


def fits(case: Case) -> Fit | None:
    return repaired(case, "wrong-operands")
