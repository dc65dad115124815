"""The gradient changes when other inputs stop requiring grad.

What it finds
-------------
Every subset of the inputs that require grad is tried. The gradient of an input may not depend on whether some other
input is frozen, and backward may not fail for a subset.

Why it matters
--------------
Fine-tuning freezes weights. A branch on `needs_input_grad` with a wrong index, or code that computes one gradient
inside the branch of another, is right while everything trains and wrong or crashing as soon as something is frozen.

Known problems
--------------
With more than four inputs only single inputs and leave-one-out subsets are tried.

References
----------
https://github.com/volcengine/verl/pull/6913, https://github.com/unslothai/unsloth/issues/4533,
https://github.com/NVIDIA/apex/pull/1517
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS219"
SEVERITY = "error"
WAIVED_BY = ("noise",)
DEMONSTRATION = "subsets"
EXPLAINS = ()
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x if ctx.needs_input_grad[0] else None, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t() if ctx.needs_input_grad[0] else None
        grad_weight = x.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, 5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""
GOOD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t() if ctx.needs_input_grad[0] else None
        grad_weight = x.t() @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, 5, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Product": example}
"""

_FROZEN_MODULE = (
    "A module with frozen parameters does this; ask `torch.autograd.grad` only for those that require grad."
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.subsets import proper_subsets

    base = lab.baseline
    leaves = base.run.arguments.differentiable
    reported: set[str] = set()
    for kept in proper_subsets(leaves):
        still = [leaf for leaf in leaves if leaf.position not in kept]
        frozen = ", ".join(f"'{leaf.name}'" for leaf in still)
        alone = f"{' and '.join(frozen.split(', '))} {'does' if len(still) == 1 else 'do'} not require grad"
        run = lab.precise_run(base.run.arguments.only(kept))
        if not run.differentiable:
            continue
        try:
            grads = run.gradients({o: v for o, v in base.v.items() if o in run.differentiable})
        except Exception as error:  # the user's backward, on a path nobody tried
            yield lab.finding(
                raised=error,
                message=f"{lab.target.name}.backward raises {type(error).__name__} when {alone}: "
                f"{str(error).splitlines()[0] if str(error) else ''}",
                argument=frozen,
                advice=_FROZEN_MODULE
                if all(leaf.held for leaf in still)
                else "Under each `if ctx.needs_input_grad[i]` compute only the gradient of that input; compute what several "
                "gradients need before the `if`.",
                severity="warning" if all(leaf.held for leaf in still) else None,
            )
            return
        for leaf in leaves:
            if leaf.position not in kept or leaf.name in reported:
                continue
            before, now = base.gradients[leaf.position], grads[leaf.position]
            if not lab.close(before, now):
                reported.add(leaf.name)
                what = "is None" if now is None else "changes"
                yield lab.finding(
                    f"{lab.target.name}.backward: the gradient of '{leaf.name}' {what} when {alone}.",
                    argument=leaf.name,
                    at="gradient",
                    advice="Compute each gradient under its own `if ctx.needs_input_grad[i]`, with i the position of "
                    "that input in forward.",
                )
