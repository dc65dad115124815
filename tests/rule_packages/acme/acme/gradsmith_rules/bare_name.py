"""the name of a Function does not say whose it is.

What it finds
-------------
A Function whose name does not begin with Acme.

Why it matters
--------------
Names are looked up in one table. Measured: two clashes in a year.

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

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "ACME102"
SEVERITY = "warning"
STATE = "preview"
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
GOOD = BAD.replace("Exp", "AcmeExp")


def lint(function: FunctionModel) -> Iterator[Finding]:
    if not function.name.startswith("Acme"):
        yield function.at(function.node, f"{function.name} does not begin with Acme.", advice="Rename it.")
