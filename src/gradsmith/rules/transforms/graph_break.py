"""torch.compile cannot take the subject into one graph.

What it finds
-------------
The subject is compiled with `fullgraph=True`; where dynamo refuses, its reason is given.

Why it matters
--------------
A graph break costs the fusion around the Function, and `fullgraph=True` raises. The numbers are right: `info`.

Known problems
--------------
None known.

References
----------
https://github.com/pytorch/pytorch/issues/103139, https://github.com/state-spaces/mamba/issues/239
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS613"
SEVERITY = "info"
LEVEL = "standard"
BAD = """
import torch


class Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.scale = x.abs().max().tolist()
        return x / 4

    @staticmethod
    def backward(ctx, grad_output):
        print("backward, largest input", ctx.scale)
        return grad_output / 4


gradsmith_inputs = {"Normalise": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("        ctx.scale = x.abs().max().tolist()\n", "").replace(
    '        print("backward, largest input", ctx.scale)\n', ""
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.compiled import graph_breaks

    if broken := graph_breaks(lab):
        line = lab.line_among(broken.frames)
        yield lab.finding(
            f"torch.compile cannot compile {lab.target.name} as one graph{' because of this line' if line else ''}. PyTorch says: "
            f"{broken.detail}",
            line=line,
            advice="This matters only if you use torch.compile. Compute with tensors only (no .item(), .tolist(), print or NumPy), or put this "
            "code into a custom op (torch.library.custom_op).",
        )
