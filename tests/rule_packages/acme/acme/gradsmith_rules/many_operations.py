"""forward runs more operations than the Acme scheduler likes.

What it finds
-------------
More than three operations in forward.

Why it matters
--------------
Each one is a message to the scheduler. Measured: 40 microseconds.

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
    from gradsmith.profiling import Profile

CODE = "ACME105"
SEVERITY = "info"
BAD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x).neg().neg().neg().neg()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(x)


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("torch.exp(x).neg().neg().neg().neg()", "torch.exp(x)")


def profile(profile: Profile) -> Iterator[Finding]:
    if profile.forward_ops > 3:
        yield Finding(f"{profile.name}.forward runs {profile.forward_ops} operations.", function=profile.name)
