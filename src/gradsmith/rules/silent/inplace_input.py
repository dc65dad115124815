"""forward writes into an input without mark_dirty.

What it finds
-------------
An input of forward is changed in place, and `ctx.mark_dirty` does not name it. At run time the values of every input are
compared before and after forward.

Why it matters
--------------
Autograd does not know that the tensor changed. What was computed from the old values upstream gets a wrong gradient, and
the version check that would have raised does not see it.

Known problems
--------------
A buffer passed in to be written (an `out` argument that needs no gradient) is reported as a warning only.

References
----------
https://github.com/pytorch/pytorch/issues/5871, https://github.com/unslothai/unsloth/issues/5002
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS204"
SEVERITY = "error"
EXPLAINS = ("wrong-gradient", "class-state")
BAD = """
import torch


class ClampedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"ClampedSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class ClampedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        positive = x.clamp(min=0)
        return positive * positive

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.clamp(min=0)


gradsmith_inputs = {"ClampedSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    import torch

    run = lab.run()
    dirty = [tensor for call in run.trace.forwards for tensor in call.dirty]
    for leaf in lab.arguments.leaves:
        passed = run.passed[leaf.position]
        if any(passed is tensor for tensor in dirty):
            continue
        before, after = leaf.tensor.detach(), passed.detach()
        if before.shape == after.shape and torch.equal(before.nan_to_num(), after.nan_to_num()):
            continue
        yield lab.finding(
            f"{lab.target.name}.forward changes its input '{leaf.name}' in place without ctx.mark_dirty({leaf.name}).",
            argument=leaf.name,
            severity="error" if leaf.differentiable else "warning",
            advice=f"Use the out-of-place operation, or call ctx.mark_dirty({leaf.name}) and return it.",
        )
