"""vmap gives another result than a loop.

What it finds
-------------
Three copies of the inputs are stacked and run under torch.func.vmap; outputs and gradients are compared with a loop. This
concerns Functions with a `vmap` staticmethod, with generate_vmap_rule, and callables made of torch operations.

Why it matters
--------------
A hand-written vmap rule sees one dimension more than forward does, at the place that `in_dims` says. Reducing over a fixed
dimension then reduces over the wrong one, and nothing raises.

Known problems
--------------
None known.

References
----------
https://github.com/pytorch/pytorch/issues/174067, https://github.com/flatironinstitute/pytorch-finufft/issues/95
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS604"
SEVERITY = "error"
LEVEL = "standard"
BAD = """
import torch


class Centre(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x - x.mean(0, keepdim=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(0, keepdim=True)

    @staticmethod
    def vmap(info, in_dims, x):
        return Centre.apply(x), in_dims[0]


gradsmith_inputs = {"Centre": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = (
    BAD[: BAD.index("    @staticmethod\n    def vmap")].replace(
        "Function):\n", "Function):\n    generate_vmap_rule = True\n\n", 1
    )
    + "\n"
    + BAD[BAD.index("gradsmith_inputs") :]
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.functorch import func_grad, vmap

    func_grad(lab)  # for its column of the matrix
    outcome = vmap(lab)
    if outcome.state == "fails" and outcome.differs:
        yield lab.finding(
            f"{lab.target.name} under vmap gives another result than a loop: {outcome.differs}.",
            advice="Move the batch dimension to the front with movedim, apply to shifted dimensions, or set "
            "generate_vmap_rule = True instead of writing vmap.",
        )
