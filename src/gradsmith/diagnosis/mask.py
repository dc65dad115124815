"""The gradient is right on one side of a mask or comparison and wrong on the other.

Forward or backward treats some elements differently, and the formula holds for part of them: a mask that is inverted, a comparison the wrong way round, a boundary that is left
out, a saturated region. The message says which part.
"""

from __future__ import annotations

import math

from torch import Tensor

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.lab.explore.coverage.choices import choices

RANK = 90
NAMES_A_MISTAKE = False
_BY_CHANCE = 100  # ways to draw; four comparisons are made for every input
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() > 1, torch.zeros_like(x), grad_output * 2 * x)


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    if not any(choices(iter(case.lab.tape.operations))):
        return None  # nothing chooses between elements: no mask can be wrong
    found = partly(case)
    if found is None:
        return None
    single, words = found
    if single:
        return Fit(words, "Look at what is special about this element.", partly_right=is_partly_right(case))
    advice = "Check the mask or comparison in backward against the one in forward."
    return Fit(words, advice, partly_right=is_partly_right(case))


def is_partly_right(case: Case) -> bool:
    """Whether the gradient is right where it is not 0: that is no accident, so the derivative is meant."""
    off = (case.claimed - case.truth).abs()
    floor = case.rtol * case.scale
    return bool(((off <= floor) & (case.truth.abs() > floor) & case.known).any())


def partly(case: Case) -> tuple[bool, str] | None:
    """Whether one element alone is wrong, and where the wrong ones are; None where all of them are, or none."""
    off = (case.claimed - case.truth).abs()
    wrong = (off > case.rtol * case.scale) & case.known
    right = (off <= case.rtol * case.scale) & case.known
    if not bool(wrong.any()) or not bool(right.any()):
        return None
    n, total = int(wrong.sum()), int(case.known.sum())
    if not bool(case.known.all()):
        # Of a sample, the wrong elements have something in common by chance, unless there are many ways to draw so many.
        where = _where(case, wrong, right) if math.comb(total, n) >= _BY_CHANCE else ""
        return False, f"is wrong at {n} of the {total} elements that were measured{where}"
    if n == 1 and total > 8:
        return True, "is wrong at a single element and right everywhere else"
    return False, f"is wrong at {n} of {total} elements{_where(case, wrong, right)} and right at the others"


def _where(case: Case, wrong: Tensor, right: Tensor) -> str:
    """The part of the input that the wrong elements have in common."""
    for name, tensor in {case.name: case.x, **case.inputs}.items():
        if tensor.shape != wrong.shape or tensor.is_complex():
            continue
        low, high = tensor[wrong].min(), tensor[wrong].max()
        if bool((tensor[right] < low).all()):
            return f" (those with {name} >= {float(low):.4g})"
        if bool((tensor[right] > high).all()):
            return f" (those with {name} <= {float(high):.4g})"
        size = tensor.abs()
        if bool((size[right] < size[wrong].min()).all()):
            return f" (those with |{name}| >= {float(size[wrong].min()):.4g})"
        if bool((size[right] > size[wrong].max()).all()):
            return f" (those with |{name}| <= {float(size[wrong].max()):.4g})"
    for dim in range(wrong.ndim):
        rows = [i for i in range(wrong.shape[dim]) if bool(wrong.select(dim, i).any())]
        if len(rows) == 1 and wrong.shape[dim] > 1:
            return f" (index {rows[0]} of dimension {dim})"
    return ""
