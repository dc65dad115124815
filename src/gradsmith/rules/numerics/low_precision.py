"""The gradient loses far more digits than its precision has to.

What it finds
-------------
The gradient in float32 (at level deep also in bfloat16 and float16) is compared with the one in float64 at the same
rounded inputs. The error is counted in units in the last place, and held against the error that autograd itself makes
in this precision, where forward can be differentiated by autograd.

Why it matters
--------------
Formulas that cancel (1 - y**2 near 1, E[x**2] - E[x]**2), sums kept in half precision, and constants of the wrong type are
exact enough in float64, where gradcheck looks, and noise in the precision that trains.

Known problems
--------------
Where autograd loses as many digits, the input is ill-conditioned, and nothing is reported.

References
----------
https://github.com/state-spaces/mamba/issues/854, https://github.com/triton-lang/triton/issues/4701
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS302"
SEVERITY = "warning"
LEVEL = "standard"
BAD = """
import torch


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log(torch.cosh(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = (torch.cosh(x + 1e-7) - torch.cosh(x - 1e-7)) / 2e-7 / torch.cosh(x)
        return grad_output * slope


gradsmith_inputs = {"LogCosh": lambda: (torch.randn(4, 3, requires_grad=True),)}
"""
GOOD = BAD.replace("(torch.cosh(x + 1e-7) - torch.cosh(x - 1e-7)) / 2e-7 / torch.cosh(x)", "torch.tanh(x)")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.explore.precision import precisions, worth_measuring

    if not worth_measuring(lab):
        return
    for found in precisions(lab):
        name = str(found.dtype).removeprefix("torch.")
        floor = 0.02 if name == "float32" else 0.3
        if found.state != "measured" or found.error <= max(floor, 30 * (found.yardstick or 0.0)):
            continue
        beside = f" (autograd's own is off by {found.yardstick:.2g})" if found.yardstick is not None else ""
        yield lab.finding(
            f"{lab.target.name}.backward in {name}: the gradient of '{found.argument}' is off by {found.error:.2g} of its "
            f"size, {found.ulps:.3g} units in the last place{beside}.",
            argument=found.argument,
            advice="Compute the sensitive part in float32 or float64, or choose a form that does not cancel.",
            evidence={"dtype": name, "error": found.error, "ulps": found.ulps, "autograd": found.yardstick},
        )
        return
