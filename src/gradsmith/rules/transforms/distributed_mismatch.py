"""On two processes the gradient differs from that of the joined batch.

What it finds
-------------
At level deep, two processes are started by torch.distributed's launcher (gloo). Each runs the Function, or the module, on half of a
doubled batch, under DDP and under FSDP2 (`fully_shard`); the averaged gradient has to be the one a single process computes on
the whole batch. It is tried only where the samples of a batch do not depend on each other.

Two surprises are explained: a buffer that forward writes (every process writes its own, and DDP keeps that of rank 0) as
a warning, and a parameter for which backward returns None (DDP makes zeros of it, which an optimizer does not skip) in
the compatibility matrix.

Why it matters
--------------
A Function that keeps state per process, reads the rank, or looks at the size of the world in backward trains another
model on eight GPUs than on one, and every single-process test passes.

Known problems
--------------
Only Functions and modules of a file are tried, on two CPU processes. Inputs without a batch dimension are taken for parameters.

References
----------
https://github.com/pytorch/pytorch/issues/16947, https://github.com/axonn-ai/axonn/pull/68
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS612"
SEVERITY = "error"
DEMONSTRATION = ""  # the probe brings a script of its own, with a launcher
LEVEL = "deep"
BAD = '''
import os

import torch


class Scale(torch.autograd.Function):
    """The author averages over the processes by hand, and so does DDP."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        share = float(os.environ.get("WORLD_SIZE", 1))
        return grad_output * weight, (grad_output * x).sum(0) / share


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.tensor([1.5, 0.5, -2.0], dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Scale": example}
'''
GOOD = BAD.replace(" / share", "").replace('        share = float(os.environ.get("WORLD_SIZE", 1))\n', "")


def probe(lab: Lab) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.lab.conditions.distributed import ddp, demonstration, fsdp
    from gradsmith.rules.transforms import used_outside

    for name, outcome in (("DDP", ddp(lab)), ("FSDP2", fsdp(lab))):
        if outcome.state == "fails":
            use = used_outside(lab, "process", methods=("backward", "setup_context", "forward"))
            what = (
                f"`{use.shown}` (line {use.line}), and what is computed with it,"
                if use is not None
                else "divisions by the world size, all_reduce and everything that depends on the rank"
            )
            found = lab.finding(
                f"{lab.target.name} under {name} in two processes, each with half of the batch, "
                f"{outcome.than('one process with the whole batch')}",
                severity=None if outcome.differs else "warning",
                advice=f"{name} averages gradients over processes by itself: remove {what} from "
                f"{use.method.name if use is not None else 'backward'}.",
                line=use.line if use is not None else None,
                at="backward",
            )
            yield replace(found, reproduce=demonstration(lab))
            return
