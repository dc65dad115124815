"""A gradient declared approximate is further off than it should be.

What it finds
-------------
The gradient is declared approximate (`# gradsmith: approximate`, or `gradient="approximate"`): finite differences inside
backward, a truncated series, foreign code. Its distance from the derivative of forward is measured, relative and
absolute: below 1e-3 is good, below 1e-2 noticeable (a warning), beyond that an error.

Why it matters
--------------
An approximation is fine as long as somebody knows how good it is. One-sided differences with a step that is too large,
or so small that rounding takes over, are off by more than optimizers forgive.

Known problems
--------------
The error is measured at the example inputs; elsewhere it may be larger.

References
----------
Measured on torch 2.13, exp(sin x) in float32: one-sided differences with a step of 1e-2 are off by 6e-3 of the gradient, with 1e-7 by
two thirds of it; central differences with 1e-3 by 4e-5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS330"
SEVERITY = "error"
BAD = """
import torch
from torch.autograd.function import once_differentiable


def foreign(x):
    return torch.exp(torch.sin(x))


class Foreign(torch.autograd.Function):  # gradsmith: approximate
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return foreign(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        step = 0.1
        return grad_output * (foreign(x + step) - foreign(x)) / step


gradsmith_inputs = {"Foreign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("step = 0.1", "step = 1e-5").replace(
    "(foreign(x + step) - foreign(x)) / step", "(foreign(x + step) - foreign(x - step)) / (2 * step)"
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.diagnosis.truth import approximation_error
    from gradsmith.source.differences import in_backward
    from gradsmith.source.loaded import model_of

    if not lab.approximate:
        return
    model = model_of(lab.target.function) if lab.target.function is not None else None
    taken = in_backward(model) if model is not None else None
    f = taken.function if taken is not None else "f"
    for pair in lab.gradient.pairs:
        x = pair.leaf.name
        error = approximation_error(lab, pair)
        if error is None or error.relative < 1e-3:
            continue
        grade = "noticeable" if error.relative < 1e-2 else "large"
        yield lab.finding(
            f"{lab.target.name}.backward returns an approximate gradient of '{pair.leaf.name}' with a relative error of "
            f"{error.relative:.2g}. gradsmith reports a relative error from 0.001 on. The largest absolute error of an element is "
            f"{error.absolute:.2g}.",
            at="gradient",
            argument=pair.leaf.name,
            severity="warning" if grade == "noticeable" else None,
            advice=f"Use central differences{'' if taken is not None else ' of the function f that forward calls'}, `({f}({x} + h) - {f}({x} - h)) / (2 * h)`, with h near 6e-6 in float64 and 5e-3 in "
            "float32, or an analytic derivative.",
            evidence={"relative": error.relative, "absolute": error.absolute},
        )
