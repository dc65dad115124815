"""backward draws random numbers.

What it finds
-------------
backward calls the random generator (`torch.rand_like`, `F.dropout`) instead of reusing what forward drew. At run time
backward is repeated under two seeds; the gradients must be equal.

Why it matters
--------------
A dropout mask that is drawn again in backward belongs to another forward: the gradient is noise around the right mean
at best. Checkpointing and retain_graph give different gradients for the same step.

Known problems
--------------
Stochastic rounding and noise on purpose are surrogates: declare them (`# gradsmith: surrogate[noise]`).

References
----------
https://github.com/pytorch/pytorch/issues/33800
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS215"
SEVERITY = "error"
EXPLAINS = (
    "not-repeatable",
    "nonlinear-backward",
    "wrong-gradient",
    "frozen-input",
    "layout-dependent",
    "class-state",
    "unused-output",
    "undeclared-surrogate",
)
BAD = """
import torch


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.p = p
        return x * (torch.rand_like(x) > p) / (1 - p)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (torch.rand_like(grad_output) > ctx.p) / (1 - ctx.p), None


gradsmith_inputs = {"Dropout": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.5)}
"""
GOOD = """
import torch
from torch.autograd.function import once_differentiable


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        keep = torch.rand_like(x) > p
        ctx.save_for_backward(keep)
        ctx.p = p
        return x * keep / (1 - p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (keep,) = ctx.saved_tensors
        return grad_output * keep / (1 - ctx.p), None


gradsmith_inputs = {"Dropout": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.5)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.state import seed_all

    v = lab.baseline.v
    drawn = []
    for seed in (1, 2, 1):
        run = lab.precise_run()
        seed_all(seed)
        drawn.append(run.gradients(v))
    for leaf in run.arguments.differentiable:
        a, b, again = (grads[leaf.position] for grads in drawn)
        if not lab.close(a, b) and lab.close(a, again):
            yield lab.finding(
                f"{lab.target.name}.backward draws random numbers: the gradient of '{leaf.name}' depends on the seed.",
                argument=leaf.name,
                advice="Draw in forward and save the mask (or the generator state) with ctx.save_for_backward.",
            )
