"""The Function fails, or loses its gradient, under autocast.

What it finds
-------------
forward is run in float32 under CPU autocast (bfloat16), backward outside of it (as the documentation recommends) and inside.
An exception in backward, or a gradient that is off by more than a quarter, is reported.

Why it matters
--------------
Inside forward, autocast turns matrix products into bfloat16 while saved inputs stay float32. backward then multiplies
tensors of two types, and raises in somebody's mixed-precision training.

Known problems
--------------
Only CPU autocast is tried here. Nobody may ever use the Function under autocast: an exception is `info`.

References
----------
https://github.com/pytorch/pytorch/issues/87979, https://github.com/state-spaces/mamba/issues/868
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS602"
SEVERITY = "info"
LEVEL = "standard"
BAD = """
import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output @ b.t(), a.t() @ grad_output


gradsmith_inputs = {"MatMul": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(3, 5, requires_grad=True))}
"""
GOOD = (
    BAD.replace(
        "    @staticmethod\n    def forward", '    @staticmethod\n    @custom_fwd(device_type="cpu")\n    def forward'
    )
    .replace(
        "    @staticmethod\n    def backward", '    @staticmethod\n    @custom_bwd(device_type="cpu")\n    def backward'
    )
    .replace("import torch\n", "import torch\nfrom torch.amp import custom_bwd, custom_fwd\n", 1)
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.environment import autocast_both, autocast_forward

    for where, outcome in (("around forward only", autocast_forward(lab)), ("around both", autocast_both(lab))):
        if outcome.state == "fails":
            yield lab.finding(
                f"{lab.target.name} under CPU autocast {where}: {outcome.detail}",
                severity="warning" if outcome.differs else "info",
                advice="Decorate forward with @torch.amp.custom_fwd(device_type=...) and backward with custom_bwd.",
            )
            return
