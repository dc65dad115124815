"""The gradients of two inputs are exchanged.

What backward returns for this input is the true gradient of another one. Gradients are returned in the order of
forward's arguments.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit

RANK = 16
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * x, grad_output * y


def example():
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 4, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""


def fits(case: Case) -> Fit | None:
    for name, claimed in case.siblings.items():
        # Two inputs that are only added have one gradient: exchanging it would change nothing.
        if case.explains(claimed) and not case.matches(claimed, case.claimed):
            return Fit(
                f"is the one returned for '{name}': the two are exchanged",
                f"Return the gradients in the order of forward's arguments; '{case.name}' and '{name}' are swapped.",
            )
    return None
