"""A finite output has a gradient that is infinite or NaN.

What it finds
-------------
forward's outputs are finite at the given inputs, and backward returns infinity or NaN. At level standard, zeros, equal
elements and denormals are tried as well. What fails only there, although forward moves by a finite slope, is a warning
where autograd through the same forward is finite, else `info`.

Why it matters
--------------
One NaN in a gradient spreads to every weight at the next optimizer step. The usual causes are a division by something
that is exactly zero, the logarithm of an underflowed exponential, or 0 * inf behind a mask.

Known problems
--------------
Where the derivative itself is infinite (sqrt at 0) the finding is true, but the remedy is a choice of convention.

References
----------
https://github.com/pytorch/pytorch/issues/187297, https://github.com/open-mmlab/mmrotate/issues/205
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, named_inputs

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS301"
SEVERITY = "error"
DEMONSTRATION = "finite"
EXPLAINS = (
    "wrong-gradient",
    "nonlinear-backward",
    "undeclared-surrogate",
    "frozen-input",
    "layout-dependent",
    "not-repeatable",
    "unused-output",
)
BAD = """
import torch


class Length(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        length = x.square().sum(1).sqrt()
        ctx.save_for_backward(x, length)
        return length

    @staticmethod
    def backward(ctx, grad_output):
        x, length = ctx.saved_tensors
        return x * (grad_output / length).unsqueeze(1)


def example():
    x = torch.randn(4, 3, dtype=torch.float64)
    x[1] = 0.0
    return (x.requires_grad_(),)


gradsmith_inputs = {"Length": example}
"""
GOOD = BAD.replace("grad_output / length", "grad_output / length.clamp(min=1e-300)")
_LARGE = (
    "If an intermediate value overflows there, compute the same in a form that stays in range, such as torch.sigmoid or "
    "torch.logsumexp. If it becomes 0 there, clamp what divides (`.clamp(min=1e-12)`). Level standard looks further."
)
_ADVICE = (
    "Keep 0 out of the division, logarithm or root: clamp its argument (`.clamp(min=1e-12)`), or replace it with torch.where before the "
    "operation. torch.where on the result alone does not help: 0 times inf is nan."
)


def probe(lab: Lab) -> Iterator[Finding]:
    import torch

    from gradsmith.lab.measure.values import finite

    base = lab.baseline
    if not all(finite(o) for o in base.run.outputs if o.is_floating_point()):
        return
    found = False
    for leaf in base.run.arguments.differentiable:
        grad = base.gradients[leaf.position]
        if grad is None or bool(torch.isfinite(grad).all()) or not bool(torch.isfinite(leaf.tensor).all()):
            continue
        first = torch.nonzero(~torch.isfinite(grad))[0].tolist()
        value = grad[tuple(first)].item()
        given = leaf.tensor.detach()[tuple(first)].item()
        yield lab.finding(
            f"{lab.target.name}.backward returns {value} as the gradient of {leaf.name}{first}. That element is {given:.6g} in "
            f"{named_inputs(lab.inputs_from)}, and every output is finite.",
            argument=leaf.name,
            advice=_ADVICE if abs(given) < 1e-3 else _LARGE,
            at="gradient",
            evidence={"element": first, "value": value, "input": given},
        )
        found = True
    if not found and lab.level != "quick":
        yield from _at_edges(lab)


def _at_edges(lab: Lab) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.lab.explore.edges import edges
    from gradsmith.lab.explore.trial import worth_exploring
    from gradsmith.lab.snippet import demonstration

    if not worth_exploring(lab):
        return
    for edge in edges(lab, ("zero", "tie", "tiny")):
        finding = lab.finding(
            f"{lab.target.name}.backward returns {edge.value} as the gradient of {edge.leaf.name}{list(edge.element)} "
            f"{edge.words} (gradsmith tried this). Every output is finite there, and the slope of forward is "
            f"{edge.slope:.3g}.",
            argument=edge.leaf.name,
            severity="warning" if edge.needless else "info",
            advice=_ADVICE,
            at="gradient",
            evidence={"element": list(edge.element), "value": edge.value, "tried": edge.words},
        )
        yield replace(finding, reproduce=demonstration(lab, edge.arguments, "finite"))
        return
