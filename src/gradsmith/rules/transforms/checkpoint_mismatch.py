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
    from gradsmith.source.outside import Outside

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
    from gradsmith.rules.transforms import used_outside

    for outcome in (checkpoint_non_reentrant(lab), checkpoint_reentrant(lab)):
        if outcome.state == "fails":
            use = used_outside(lab, "draw", "state", methods=("forward", "setup_context")) if outcome.differs else None
            why, advice = _why(use)
            yield lab.finding(
                f"{lab.target.name} under torch.utils.checkpoint {outcome.than('a plain call')}{why}",
                line=use.line if use is not None else lab.line_among(outcome.frames),
                severity=None if outcome.differs else "info",
                advice=advice,
            )
            return


def _why(use: Outside | None) -> tuple[str, str]:
    """(what the source shows, what to write): checkpoint runs forward again, and repeats only what torch draws."""
    if use is None:
        return "", (
            "checkpoint runs forward twice, and both runs have to compute the same. Draw random numbers with torch, not with "
            "NumPy or random, and do not change globals or attributes in forward."
        )
    twice = f"checkpoint runs {use.method.name} twice"
    if use.kind == "draw":
        return (
            f" {twice}, and `{use.shown}` (line {use.line}) draws other numbers the second time.",
            f"Draw with torch (torch.rand, torch.bernoulli) instead of `{use.shown}`: checkpoint repeats what torch draws.",
        )
    return (
        f" {twice}, and line {use.line} changes `{use.shown}` each time.",
        f"Do not change `{use.shown}` in {use.method.name}: pass what it needs as an argument, and keep results on ctx.",
    )
