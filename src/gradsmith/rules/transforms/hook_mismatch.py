"""The gradient relies on saved tensors being the very same objects.

What it finds
-------------
The subject is run under saved-tensor hooks that hand back copies (as offloading, compression and checkpointing do), and
under save_on_cpu. Outputs and gradients have to stay the same.

Why it matters
--------------
A table kept beside save_for_backward under `data_ptr()` or `id()` of a saved tensor finds nothing, or somebody else's entry,
as soon as the tensor comes back from a hook at another address.

Known problems
--------------
None known.

References
----------
https://github.com/pytorch/pytorch/issues/153334; measured on torch 2.13: tensors kept on ctx bypass the hooks
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS609"
SEVERITY = "error"
DEMONSTRATION = "hooks"
LEVEL = "standard"
# Slopes go with their tensor: the copy may get the address of one that is gone, and would find them.
BAD = """
import weakref

import torch

SLOPES = {}


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        SLOPES[x.data_ptr()] = [3 * v * v for v in x.flatten().tolist()]
        weakref.finalize(x, SLOPES.pop, x.data_ptr(), None)
        return x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = SLOPES.get(x.data_ptr(), [0.0] * x.numel())
        return grad_output * torch.tensor(slope, dtype=x.dtype).view_as(x)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("SLOPES.get(x.data_ptr(), [0.0] * x.numel())", "[3 * v * v for v in x.flatten().tolist()]")
GOOD = (
    GOOD.replace("        SLOPES[x.data_ptr()] = [3 * v * v for v in x.flatten().tolist()]\n", "")
    .replace("        weakref.finalize(x, SLOPES.pop, x.data_ptr(), None)\n", "")
    .replace("import weakref\n\n", "")
    .replace("SLOPES = {}\n\n\n", "\n")
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.environment import copied_by_hooks, offloaded
    from gradsmith.rules.transforms import used_outside

    for name, outcome in (
        ("under saved-tensor hooks that return copies (as CPU offload does)", copied_by_hooks(lab)),
        ("under save_on_cpu", offloaded(lab)),
    ):
        if outcome.state == "fails":
            # What backward looks up by an address is not found: hooks hand back copies.
            use = used_outside(lab, "address", methods=("backward",)) if outcome.differs else None
            line = lab.line_among(outcome.frames)
            yield lab.finding(
                f"{lab.target.name} {name} {outcome.than('a plain call')}",
                line=use.line if use is not None else line,
                severity=None if outcome.differs else "warning",
                advice=f"Do not look tensors up by `{use.shown}`: hooks hand back copies, which have other addresses. Save what "
                "backward needs with ctx.save_for_backward."
                if use is not None
                else "Save everything that backward needs with ctx.save_for_backward. Do not look tensors up by id() or "
                "data_ptr(): hooks hand back copies.",
            )
            return
