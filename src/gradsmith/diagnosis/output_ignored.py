"""The gradient that comes back through one of several outputs is dropped.

Each output has its own grad_output, and the gradient of an input is the sum over all outputs. Here one of them adds
nothing, although the output depends on the input.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit

RANK = 11
BAD = """
import torch


class SumAndProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx, grad_sum, grad_product):
        x, y = ctx.saved_tensors
        return grad_sum, grad_sum


def example():
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 4, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"SumAndProduct": example}
"""


def fits(case: Case) -> Fit | None:
    """Recognised together with `zero`, which tells a dead output from a dead input."""
    return None
