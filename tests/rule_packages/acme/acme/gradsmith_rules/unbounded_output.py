"""the output is larger than the Acme format can hold.

What it finds
-------------
Outputs above 1000 at the inputs of the check.

Why it matters
--------------
What is larger is cut off when it is sent. Measured: one lost run.

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
    from gradsmith.lab import Lab

CODE = "ACME104"
SEVERITY = "warning"
BAD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1000 * torch.exp(x).clamp(min=2)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 1000 * grad_output * torch.exp(x) * (x.exp() > 2)


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("1000 * ", "")


def probe(lab: Lab) -> Iterator[Finding]:
    largest = max((float(output.abs().max()) for output in lab.run().outputs if output.numel()), default=0.0)
    if largest > 1000:
        yield lab.finding(f"{lab.target.name} returns {largest:g}, above 1000.", advice="Scale the output.")
