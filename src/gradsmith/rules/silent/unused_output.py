"""backward fails or changes when only some outputs are used.

What it finds
-------------
Every output is used alone. backward then gets zeros (or None, after `set_materialize_grads(False)`) for the others;
it has to cope, and the gradients have to be the same as with explicit zeros.

Why it matters
--------------
Users take one output of several. With `set_materialize_grads(False)` the others' gradients are None, and arithmetic
on None raises only for the user who does not use every output.

Known problems
--------------
None known.

References
----------
Of 14 public Functions that call set_materialize_grads(False), 3 add the gradients without testing them for None (survey of
800 Functions in 27 codebases).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS223"
SEVERITY = "error"
WAIVED_BY = ("stop",)
DEMONSTRATION = "unused"
BAD = """
import torch


class SumAndProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx, grad_sum, grad_product):
        x, y = ctx.saved_tensors
        grad_sum = sum([grad_sum])
        grad_product = sum([grad_product])
        return grad_sum + grad_product * y, grad_sum + grad_product * x


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"SumAndProduct": example}
"""
GOOD = """
import torch


class SumAndProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx, grad_sum, grad_product):
        x, y = ctx.saved_tensors
        return grad_sum + grad_product * y, grad_sum + grad_product * x


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"SumAndProduct": example}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    run, v = lab.baseline.run, lab.baseline.v
    if len(run.differentiable) < 2:
        return
    for o in run.differentiable:
        name = run.output_names[o]
        shown = lab.shown_output(o, name)
        zeros = lab.gradients({p: g if p == o else g * 0 for p, g in v.items()})
        try:
            alone = lab.gradients({o: v[o]})
        except Exception as error:  # the user's backward, given None or zeros it does not expect
            yield lab.finding(
                raised=error,
                message=f"{lab.target.name}.backward raises {type(error).__name__} when the loss uses only {shown}: "
                f"{str(error).splitlines()[0] if str(error) else ''}",
                argument=name,
                advice="Remove ctx.set_materialize_grads(False): without it PyTorch passes zeros. If you keep it, the grad_output of an unused output "
                "is None: test it with `is None`, and leave its part out.",
            )
            continue
        for leaf in run.arguments.differentiable:
            if not lab.close(zeros[leaf.position], alone[leaf.position]):
                yield lab.finding(
                    f"{lab.target.name}.backward: with only {shown} used, the gradient of '{leaf.name}' differs from the "
                    "one with explicit zeros for the other outputs.",
                    argument=name,
                    advice="Treat a grad_output of None as zero.",
                )
                break
