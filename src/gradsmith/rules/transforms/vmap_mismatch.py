"""torch.func (vmap, jacrev, grad) gives a different result from autograd.

What it finds
-------------
Three copies of the inputs are stacked and run under torch.func.vmap; outputs and gradients are compared with a loop. This
concerns Functions with a `vmap` staticmethod, with generate_vmap_rule, and callables made of torch operations. The
gradient of torch.func.grad, and the Jacobian of torch.func.jacrev (which runs backward under vmap) times a grad_output,
have to be what backward gives.

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
DEMONSTRATION = "vmap"
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
    from dataclasses import replace

    from gradsmith.lab.conditions.functorch import func_grad, jacrev, vmap
    from gradsmith.lab.snippet import demonstration

    for name, condition in (("torch.func.grad", func_grad), ("torch.func.jacrev", jacrev)):
        other = condition(lab)
        if other.state == "fails" and other.differs:
            found = lab.finding(
                f"{lab.target.name} under {name} gives a different result from autograd: {other.differs}.",
                advice="Do not use sizes that are written as numbers, state outside ctx, or `.data` in backward: torch.func does not "
                "see them.",
            )
            yield replace(found, reproduce=demonstration(lab, lab.precise[1], "jacrev"))
            return
    outcome = vmap(lab)
    if outcome.state == "fails" and outcome.differs:
        yield lab.finding(
            f"{lab.target.name} under vmap gives a different result from a loop: {outcome.differs}.",
            at="vmap",
            advice="Delete the vmap method and write `generate_vmap_rule = True` in the class: PyTorch then generates the rule. If you "
            "keep the method, move the batch dimension to the front with movedim. Then dim=0 of forward is dim=1 in vmap.",
        )
