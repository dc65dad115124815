"""jvp and backward disagree.

What it finds
-------------
Where a Function defines jvp, forward mode is run along a random direction u, and <v, jvp(u)> is compared with
<backward(v), u>. Both are the same number for every Jacobian.

Why it matters
--------------
Hessian-vector products and jacfwd use jvp, training uses backward; with two formulas by hand one of them is easily wrong.

Known problems
--------------
Where backward is wrong as well, only that is reported.

References
----------
https://github.com/pytorch/pytorch/issues/192985 (on jvp of a Function), measured on torch 2.13: nothing compares the two
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS608"
SEVERITY = "error"
DEMONSTRATION = "jvp"
LEVEL = "standard"
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * x**2


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("tangent * x**2", "tangent * 3 * x**2")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.functorch import jvp

    if lab.surrogate or lab.approximate:
        return
    outcome = jvp(lab)
    if outcome.state == "fails" and outcome.differs:
        yield lab.finding(
            f"{lab.target.name}.jvp and {lab.target.name}.backward disagree: {outcome.differs}.",
            advice="Derive both from the same formula: jvp multiplies by the Jacobian, backward by its transpose.",
            at="jvp",
        )
