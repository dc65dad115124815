"""The gradient is right only for some values of an input.

What it finds
-------------
Every floating input, with or without a gradient, is redrawn, scaled by 30 and by 1/1000, negated, shifted, reversed, given ties
and zeros, and made large; masks get other elements, empty rows, and become all True or all False. No step leaves a domain in which
the example lies (positive, symmetric, rows that sum to 1): for that see `assumes`. So constants of ones, initial states of
zero and branches on a norm or a product no longer hide a mistake.

Why it matters
--------------
Normalisation layers start with weight 1 and bias 0. A backward that forgets the weight is right at initialisation, passes
its test, and is wrong from the first optimiser step on. A ReLU6 whose backward forgets the 6 is right on every test that
draws from a normal distribution.

Known problems
--------------
A branch that none of these steps reaches is not judged. The flat side of a clamp, where backward goes on with a finite slope, is an
assumption (`assumes`).

References
----------
https://github.com/NVIDIA/Megatron-LM/pull/6859 (invisible while the weight is 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS314"
SEVERITY = "error"
LEVEL = "standard"
EXPLAINS = ("class-state",)  # a gradient that does not follow the parameter looks like one that remembers it
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.clone(), (grad_output * x).sum(0)


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.ones(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Scale": example}
"""
GOOD = (
    BAD.replace("save_for_backward(x)", "save_for_backward(x, weight)")
    .replace("(x,) = ctx", "x, weight = ctx")
    .replace("grad_output.clone()", "grad_output * weight")
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.checking.discoveries import discovered

    yield from discovered(
        lab, ("values", "branch"), "Make the same distinction in backward as in forward, and keep every factor."
    )
