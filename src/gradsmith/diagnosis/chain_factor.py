"""A factor of the chain rule is missing, or one too many.

The gradient becomes right when it is multiplied (or divided) by something that forward had at hand: the input, the
output, another input, or a simple function of them. Usually the derivative of an inner function was forgotten.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.repair import repaired
from gradsmith.diagnosis.vocabulary import words_for

RANK = 82
BAD = """
import torch


class SquaredSine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.cos(x * x) * 2


gradsmith_inputs = {"SquaredSine": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    for word in words_for(case):
        if case.explains(case.claimed * word.value):
            return Fit(
                f"lacks the factor {word.text}", f"Multiply what backward returns for '{case.name}' by {word.text}."
            )
        if case.matches(case.claimed, case.truth * word.value):
            return Fit(
                f"has the factor {word.text} too many",
                f"Divide what backward returns for '{case.name}' by {word.text}.",
            )
    return repaired(case, "chain-factor")
