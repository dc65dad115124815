"""An output is marked non-differentiable although it depends on an input.

What it finds
-------------
An output of floating type carries no gradient (usually because of `mark_non_differentiable`), and yet it changes when
an input that requires grad is moved.

Why it matters
--------------
A loss that uses that output gets no gradient through it, and no error. It is right for auxiliary outputs that
nobody differentiates, which is why this is only a remark.

Known problems
--------------
Auxiliary outputs, such as the log-sum-exp of an attention kernel, are often marked on purpose.

References
----------
Measured on torch 2.13: a loss on such an output leaves `x.grad` at None, without a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS222"
SEVERITY = "info"
BAD = """
import torch


class SumAndSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.mark_non_differentiable(square)
        return 3 * x, square

    @staticmethod
    def backward(ctx, grad_triple, grad_square):
        return 3 * grad_triple


gradsmith_inputs = {"SumAndSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class SumAndSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x, x * x

    @staticmethod
    def backward(ctx, grad_triple, grad_square):
        (x,) = ctx.saved_tensors
        return 3 * grad_triple + 2 * x * grad_square


gradsmith_inputs = {"SumAndSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.gradient import moved, typical_size
    from gradsmith.lab.run import normal_like

    run = lab.precise_run()
    silent = [o for o, out in enumerate(run.outputs) if not out.requires_grad and out.is_floating_point()]
    for leaf in run.arguments.differentiable if silent else []:
        step = normal_like(leaf.tensor, lab.generator(7)) * typical_size(leaf.tensor) * 1e-3
        evaluate = moved(lab.precise[0], run.arguments, leaf, step, lab.settings)
        here, there = evaluate(0.0), evaluate(1.0)
        for o in silent:
            if not lab.close(here[o], there[o]):
                shown = lab.shown_output(o, run.output_names[o])
                yield lab.finding(
                    f"{lab.target.name}: {shown} changes with '{leaf.name}', but gradients do not flow through it.",
                    at="mark",
                    argument=leaf.name,
                    advice="If nobody differentiates this output, there is nothing to do. Otherwise remove the mark "
                    "(mark_non_differentiable) of this output, and use the grad_output of this output in backward.",
                )
                return
