"""A term of the derivative is missing.

The product rule has two terms, and one of them was forgotten: the difference between the claimed gradient and the true
one is itself a simple product.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.repair import repaired
from gradsmith.diagnosis.vocabulary import words_for

RANK = 84
BAD = """
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.sigmoid(x)


gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    words = words_for(case) if case.elementwise else []
    one = [(w.text, w.value) for w in words]
    pairs = [(f"{a.text} * {b.text}", a.value * b.value) for i, a in enumerate(words) for b in words[i:]]
    for text, value in [*one, *pairs]:
        for sign, shown in ((1.0, "+"), (-1.0, "-")):
            if case.explains(case.claimed + sign * case.v * value):
                return Fit(
                    f"lacks the term {shown} grad_output * {text}",
                    f"Add `{shown} grad_output * {text}` to the gradient of '{case.name}'.",
                )
    return repaired(case, "missing-term")
