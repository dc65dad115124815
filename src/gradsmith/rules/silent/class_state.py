"""State on the class or module is shared by every call.

What it finds
-------------
forward leaves something on the class (`Fn.mask = mask`), in a global or in a default argument, and backward reads it. At
run time a second forward with other inputs is run between a forward and its backward; the gradient must not change.

Why it matters
--------------
With one call per step it works. With two layers of the same kind, two micro-batches or a validation pass in between,
the later call overwrites what the earlier backward needs, and nothing raises.

Known problems
--------------
Constants and counters on a class are fine and are not reported.

References
----------
https://github.com/pytorch/pytorch/issues/16947, https://github.com/pytorch/pytorch/issues/821
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS216"
SEVERITY = "error"
EXPLAINS = ("wrong-gradient", "nonlinear-backward", "frozen-input", "layout-dependent", "not-repeatable")
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Square.last = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2 * Square.last


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    run = lab.precise_run()
    others = {x.position: x.tensor.detach() * 0.75 for x in run.arguments.differentiable}
    shifted = {p: t.requires_grad_() for p, t in others.items()}
    try:
        lab.precise_run(run.arguments.replaced(shifted))
    except Exception:  # forward may refuse the shifted values (a domain): then nothing stands in between
        return
    grads = run.gradients(lab.baseline.v)
    for leaf in run.arguments.differentiable:
        if not lab.close(lab.baseline.gradients[leaf.position], grads[leaf.position]):
            yield lab.finding(
                f"{lab.target.name}: the gradient of '{leaf.name}' changes when another forward runs before backward: the "
                "calls share state.",
                argument=leaf.name,
                advice="Keep what backward needs on ctx: tensors through ctx.save_for_backward, numbers as attributes.",
            )
            return
