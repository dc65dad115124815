"""torch.library.opcheck refuses the custom op.

What it finds
-------------
For custom ops, the four tests of torch.library.opcheck (schema, autograd registration, FakeTensor, AOT with dynamic shapes)
are run on the inputs, and the first that fails is reported.

Why it matters
--------------
An op whose schema lies about what it writes, or that has no fake implementation, breaks under compile and export. opcheck
does not look at the gradient's value; the other rules do.

Known problems
--------------
A missing fake implementation is `info`: the op says so when it is compiled.

References
----------
https://docs.pytorch.org/docs/stable/library.html (opcheck), https://github.com/pytorch/pytorch/issues/144639
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS614"
SEVERITY = "warning"
LEVEL = "standard"
BAD = """
import torch


@torch.library.custom_op("gradsmith_example::shift_bad", mutates_args=())
def shift(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@shift.register_fake
def _(x):
    return x.new_empty(x.numel())


def setup_context(ctx, inputs, output):
    pass


def backward(ctx, grad_output):
    return grad_output.clone()


shift.register_autograd(backward, setup_context=setup_context)
gradsmith_inputs = {"shift": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("x.new_empty(x.numel())", "torch.empty_like(x)").replace("shift_bad", "shift_good")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.compiled import opcheck

    if lab.target.kind != "custom_op":
        return
    outcome = opcheck(lab)
    if outcome.state == "fails":
        lacking = not outcome.advice and ("register_fake" in outcome.detail or "no fake" in outcome.detail.lower())
        yield lab.finding(
            f"{lab.target.name} fails torch.library.opcheck: {outcome.detail}",
            severity="info" if lacking else None,
            advice=outcome.advice
            or "Give the operator a register_fake that returns tensors of the same shape and dtype as the operator, and list every "
            "argument it writes to in mutates_args.",
        )
