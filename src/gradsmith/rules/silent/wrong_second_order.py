"""The gradient of the gradient is wrong, without an error.

What it finds
-------------
The gradient that backward returns is differentiated once more (`create_graph=True`) and compared with differences of the
first gradient, for the inputs and for grad_output. A Function that raises an error for a second derivative is fine; that
`@once_differentiable` refuses only while grad_output needs a gradient itself is remarked upon (info).

Why it matters
--------------
Gradient penalties, Hessian-vector products, meta-learning and physics-informed losses differentiate twice. Saved
intermediates, detached tensors and foreign code are constants to autograd, so terms are missing from the second
derivative, and nothing says so. Measured on torch 2.13: x**3 with x**2 saved is off by a factor of 2, and with
`@once_differentiable` the derivative of x * 3x**2 at 1 and 2 comes out as [3, 12] instead of [9, 36].

Known problems
--------------
Most Functions are never differentiated twice; decorate backward with `@once_differentiable` to say so. A second derivative
that is needed can be demanded with `gs.check(..., second_order=True)`, and then this is an error. So is a gradient that has
no graph at all, and is not zero.

References
----------
https://github.com/pytorch/pytorch/issues/58509, https://github.com/NVlabs/tiny-cuda-nn/issues/58
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS221"
SEVERITY = "warning"
OUTCOME = "second order"
WAIVED_BY = ("surrogate",)
DEMONSTRATION = "second"
EXPLAINS = ()
LEVEL = "standard"
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * torch.no_grad()(torch.square)(x)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("torch.no_grad()(torch.square)(x)", "x**2")


_GENERAL = "Save nothing but inputs and outputs, and compute the rest again in backward with torch operations"


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.second_order import second_order, silent_constant

    if lab.gradient.wrong or lab.approximate:
        return  # the derivative of a wrong gradient says nothing new
    judged = second_order(lab)
    if judged.judgement is None:
        if lab.demands_second_order:
            yield lab.finding(
                f"{lab.target.name} refuses a second derivative: {judged.refused}",
                severity="error",
                advice="Write backward in differentiable torch operations on inputs and outputs.",
            )
        elif (constant := silent_constant(lab)) is not None:
            yield lab.finding(
                f"Second derivatives of {lab.target.name} can be wrong without an error. PyTorch refuses them only if grad_output "
                f"requires a gradient. After `torch.autograd.grad(y.sum(), {constant.argument}, create_graph=True)` autograd "
                f"takes the gradient for a constant. It changes with '{constant.argument}', by {constant.true:.3g} per unit.",
                argument=constant.argument,
                severity="info",
                advice="If you need no second derivatives, there is nothing to do. Otherwise write backward in differentiable torch "
                "operations on inputs and outputs.",
                evidence={"claimed": 0.0, "true": constant.true},
            )
        return
    if lab.demands_second_order and judged.without_graph:
        yield lab.finding(
            f"{lab.target.name}: no second derivative: {judged.without_graph} has no graph.",
            severity="error",
            advice="Write backward in differentiable torch operations on inputs and outputs: no torch.no_grad(), no "
            ".detach(), no NumPy.",
        )
        return
    cut = lab.cut
    for pair in judged.judgement.wrong:
        if pair.mismatch is None:
            continue
        m = pair.mismatch
        yield lab.finding(
            f"{lab.target.name} has a wrong second derivative at {m.argument}{list(m.element or ())}: autograd through backward "
            f"gives {m.claimed:.6g}, finite differences of backward give {m.true:.6g}.",
            line=cut[0] if cut is not None else lab.line_of_gradient(m.argument),
            argument=m.argument,
            severity="error" if lab.demands_second_order else None,
            advice=f"{cut[1] if cut is not None else _GENERAL}. If you never need second derivatives, decorate backward with "
            "@torch.autograd.function.once_differentiable: most attempts to compute one then raise.",
            evidence={"element": m.element, "claimed": m.claimed, "true": m.true},
        )
        return
