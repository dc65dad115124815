"""The gradient loses far more digits than its precision has to.

What it finds
-------------
The gradient in float32 (at level deep also in bfloat16 and float16) is compared with the one in float64 at the same
rounded inputs. The error is counted in units in the last place, and compared with the error that autograd itself makes
in this precision, where forward can be differentiated by autograd.

Where autograd through the same forward stays accurate in float16, so must the gradient: at the example's inputs, at larger
ones, and with a scaled loss, as far as forward and autograd bear it. At inputs and scales that the example does not have this
is a warning if forward itself converts float16 to a wider type, and at level deep `info` elsewhere.

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
        beside = f"; autograd through forward is off by {found.yardstick:.2g}" if found.yardstick is not None else ""
        yield lab.finding(
            f"{lab.target.name}.backward loses digits in {name}: compared with float64, the gradient of '{found.argument}' is off by "
            f"{found.error:.2g} times the largest correct element ({found.ulps:.3g} rounding steps of {name}){beside}.",
            argument=found.argument,
            advice="Compute the step that loses digits in a wider dtype, or use a formula that does not subtract two numbers "
            "that are nearly equal.",
            at="gradient",
            evidence={"dtype": name, "error": found.error, "ulps": found.ulps, "autograd": found.yardstick},
        )
        return
    yield from _in_half(lab)


def _in_half(lab: Lab) -> Iterator[Finding]:
    """float16, where autograd through the same forward stays accurate."""
    import math

    from gradsmith.lab.explore.half import half_loss

    found = half_loss(lab)
    if found is None:
        return
    # Numbers that the example does not have matter to code that was written for float16.
    meant = found.widens or not found.words
    what = (
        "is NaN or infinite"
        if math.isinf(found.error)
        else f"is off by {found.error:.2g} times the largest correct element"
    )
    where = f", with {found.words}" if found.words else ""
    yield lab.finding(
        f"{lab.target.name}.backward in float16: the gradient of '{found.leaf.name}' {what}{where}. Autograd through the same "
        f"forward is off by {found.autograd:.2g} there.",
        argument=found.leaf.name,
        severity="warning" if meant else "info",
        at="gradient",
        advice="Convert to float32 before products and sums, and back to the type of the input at the end.",
        evidence={"dtype": "float16", "error": _json(found.error), "autograd": found.autograd},
    )


def _json(number: float) -> float | str:
    return number if number < float("inf") else "inf"
