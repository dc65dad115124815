"""Activation checkpointing gives a different gradient.

What it finds
-------------
The subject is run under torch.utils.checkpoint, both kinds, and outputs and gradients are compared with the plain run.

Why it matters
--------------
Checkpointing runs forward again during backward. PyTorch puts its own random state back, and nothing else: a mask drawn
with Python's or NumPy's generator, or any counter, is another one in the second run.

Known problems
--------------
Forward in place is not tried.

References
----------
https://github.com/pytorch/pytorch/issues/193671, https://github.com/pytorch/pytorch/issues/147565
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS605"
SEVERITY = "error"
DEMONSTRATION = "checkpoint"
LEVEL = "standard"
BAD = """
import random

import torch


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        keep = [[random.random() > 0.5 for _ in row] for row in x]
        mask = torch.tensor(keep, dtype=x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask


gradsmith_inputs = {"Dropout": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("        keep = [[random.random() > 0.5 for _ in row] for row in x]\n", "").replace(
    "torch.tensor(keep, dtype=x.dtype)", "(torch.rand(x.shape) > 0.5).to(x.dtype)"
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.environment import checkpoint_non_reentrant, checkpoint_reentrant

    for outcome in (checkpoint_non_reentrant(lab), checkpoint_reentrant(lab)):
        if outcome.state == "fails":
            yield lab.finding(
                f"{lab.target.name} under torch.utils.checkpoint {outcome.than('a plain call')}",
                line=lab.line_among(outcome.frames),
                severity=None if outcome.differs else "info",
                advice="checkpoint runs forward twice, and both runs have to compute the same. Draw random numbers with torch.rand "
                "or torch.bernoulli (not NumPy or random), and do not change globals or attributes in forward.",
            )
            return
