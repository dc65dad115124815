"""backward calls exp.

What it finds
-------------
`exp` in backward: the first version of exp-again.

Why it matters
--------------
The Acme trainer calls backward twice as often as forward. Measured: a tenth of its time.

Known problems
--------------
None that we know of.

References
----------
Measured at Acme, on the trainer of 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from acme.gradsmith_rules._calls import calls_in_backward
from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "ACME103"
SEVERITY = "warning"
STATE = "deprecated"
REPLACED_BY = "exp-again"
BAD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(x)


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = (
    BAD.replace(
        "ctx.save_for_backward(x)\n        return torch.exp(x)",
        "y = torch.exp(x)\n        ctx.save_for_backward(y)\n        return y",
    )
    .replace("(x,)", "(y,)")
    .replace("grad_output * torch.exp(x)", "grad_output * y")
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    for call in calls_in_backward(function, "exp"):
        yield function.at(call, f"{function.name}.backward calls exp.", advice="Save the result of forward.")
