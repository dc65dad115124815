"""The gradient is wrong for another value of an option.

What it finds
-------------
Arguments that are not tensors are varied, defaults that the call leaves out among them: values that the source names
(`Literal`, comparisons, tables, the words that torch itself takes, words in quotes in the docstring), flags, `train()` and `eval()`,
None where it is allowed, a tensor where None stands, other dimensions, and numbers that nobody named. An input that does not
require grad in the example gets it. For every option that forward accepts, the gradient has to be the derivative.

Why it matters
--------------
forward has a branch per option, backward often only the one that was tested: `reduction="mean"` without its 1/n,
`bias=None` with a gradient for the bias, a negative `dim` used as an index.

Known problems
--------------
A value that nobody named gives an assumption (`assumes`), not an error. An option that changes gradients and never outputs is taken for
gradient control: a warning.

References
----------
Measured on torch 2.13: the example passes gradcheck with reduction="sum", and is off by the factor `x.numel()` with "mean".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS316"
SEVERITY = "error"
LEVEL = "standard"
BAD = """
import torch


class SquareLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, reduction):
        ctx.save_for_backward(x)
        losses = x.square()
        return losses.mean() if reduction == "mean" else losses.sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x, None


gradsmith_inputs = {"SquareLoss": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), "sum")}
"""
GOOD = BAD.replace(
    "ctx.save_for_backward(x)", 'ctx.save_for_backward(x)\n        ctx.count = x.numel() if reduction == "mean" else 1'
).replace("grad_output * 2 * x, None", "grad_output * 2 * x / ctx.count, None")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.discoveries import discovered

    yield from discovered(
        lab,
        ("named option", "invented option", "gradient control", "requires grad"),
        "Keep the option on ctx, and let backward follow the same branch.",
    )
