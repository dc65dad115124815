"""A view of an output is saved: the graph is never freed.

What it finds
-------------
forward is run, the result dropped, and the garbage collector called. If the node of the graph is still alive, it is lost
for good: save_for_backward was given a view of an output (`y.t()`, `y[0]`, `y.view(-1)`).

Why it matters
--------------
Each forward without a backward leaks its activations, until the process ends. Measured on torch 2.13: 50 of 50 graphs
alive even after `gc.collect()`.

Known problems
--------------
Where backward runs, the memory is freed; evaluation code that never calls backward is what leaks.

References
----------
https://github.com/pytorch/pytorch/issues/94990
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS405"
SEVERITY = "error"
DEMONSTRATION = "leak"
EXPLAINS = ("reference-cycle", "intermediate-saved")
BAD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result.view(-1))
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (flat,) = ctx.saved_tensors
        return grad_output * flat.view(grad_output.shape)


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.leaks import survivors

    alive = survivors(lab)
    if alive.after_collection:
        yield lab.finding(
            f"{lab.target.name}.forward saves a view of its output. If backward is not called, the memory is never freed, not even "
            f"by gc.collect() (seen in {alive.after_collection} of {alive.trials} runs of forward).",
            advice="Save the output itself, and take the view of it in backward.",
            at="save",
            evidence={"alive": alive.after_collection, "trials": alive.trials},
        )
