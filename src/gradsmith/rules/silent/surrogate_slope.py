"""A surrogate does not have the slope it claims.

What it finds
-------------
A surrogate gradient is declared with `like=fn`: backward claims the slope of `fn` (a sigmoid in the place of a step, in
spiking networks). The gradient of `fn` under autograd is compared with what backward returns.

Why it matters
--------------
Nobody can check a surrogate against its forward, so a slip in its formula stays. The declared function is the reference
that was missing.

Known problems
--------------
`like` gets the same arguments as forward and must return the same shapes.

References
----------
Surrogate slopes are where spiking-network libraries differ silently
(https://github.com/jeshraghian/snntorch); measured: a mutant of this kind passes every other check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from torch import Tensor

    from gradsmith.lab import Lab

CODE = "GS229"
SEVERITY = "error"
DEMONSTRATION = "slope"
BAD = """
import torch

import gradsmith as gs


@gs.surrogate("custom", like=lambda x: torch.sigmoid(4 * x))
class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(4 * x)
        return grad_output * s * (1 - s)


gradsmith_inputs = {"Spike": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("return grad_output * s", "return grad_output * 4 * s")


def probe(lab: Lab) -> Iterator[Finding]:
    import torch

    from gradsmith.lab.lab import same
    from gradsmith.lab.measure.oracle import OwnForward

    like = lab.like
    if like is None:
        return

    def claimed_by_module(parameters: object, *args: Any, **kwargs: Any) -> Any:
        return like(*args, **kwargs)  # a module is examined as a function of its parameters, too

    run, v = lab.baseline.run, lab.baseline.v
    reference = OwnForward(
        claimed_by_module if lab.target.module is not None else like, run.arguments, lab.settings.seed
    )
    for o in run.differentiable:
        wanted, claimed = reference.gradients(o, v[o]), lab.gradients({o: v[o]})
        for leaf in run.arguments.differentiable:
            true, said = wanted[leaf.position], claimed[leaf.position]
            if said is None:  # PyTorch takes None for zero
                said = true * 0
            if same(true, said, max(1e-6, lab.tolerance.rtol), lab.tolerance.floor):
                continue
            at = tuple(int(i) for i in torch.unravel_index((true - said).abs().argmax(), true.shape))
            yield lab.finding(
                f"{lab.target.name}.backward returns {said[at].item():.6g} as the gradient of {leaf.name}{list(at)}. backward is declared to be "
                f"the derivative of `like={_named(lab)}`, which is {true[at].item():.6g} at this element.{_ratio(true, said)}",
                at="gradient",
                argument=leaf.name,
                advice="Correct this line, or change the function after `like=` to the one whose derivative backward computes.",
                evidence={"element": list(at), "claimed": said[at].item(), "true": true[at].item()},
            )


def _named(lab: Lab) -> str:
    """The function as it is written, and where: `torch.sigmoid`, `lambda (line 7)`."""
    name = getattr(lab.like, "__name__", type(lab.like).__name__)
    code = getattr(lab.like, "__code__", None)
    line = lab.line_among([(code.co_filename, code.co_firstlineno)]) if code is not None else None
    return f"{'lambda' if name == '<lambda>' else name}{f' (line {line})' if line else ''}"


def _ratio(true: Tensor, said: Tensor) -> str:
    """` It is 4 times that at every element.`, where there is such a number."""
    kept = said != 0
    if not bool(kept.any()) or bool((true[~kept] != 0).any()):
        return ""
    ratios = true[kept] / said[kept]
    first = ratios[0].item()
    same = bool(((ratios - first).abs() <= 1e-6 * abs(first)).all())
    return f" The derivative is {first:.6g} times what backward returns, at every element." if same else ""
