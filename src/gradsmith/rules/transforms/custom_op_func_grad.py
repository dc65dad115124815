"""torch.func.grad raises for a custom op with register_autograd.

What it finds
-------------
torch.func.grad of the custom op is tried. Up to PyTorch 2.13, the class that register_autograd generates has no setup_context,
and torch.func refuses it.

Why it matters
--------------
The message asks the user to write a setup_context that they did write; there is nothing to fix in the op.

Known problems
--------------
A defect of PyTorch, seen in 2.8 to 2.13; the thread is open.

References
----------
https://github.com/pytorch/pytorch/issues/168393, https://github.com/pytorch/pytorch/issues/170834
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS607"
SEVERITY = "info"
LEVEL = "standard"
BAD = """
import torch


@torch.library.custom_op("gradsmith_example::triple_bad", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return 3 * x


@triple.register_fake
def _(x):
    return torch.empty_like(x)


def setup_context(ctx, inputs, output):
    pass


def backward(ctx, grad_output):
    return 3 * grad_output


triple.register_autograd(backward, setup_context=setup_context)
gradsmith_inputs = {"triple": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Triple(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return 3 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output


gradsmith_inputs = {"Triple": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def probe(lab: Lab) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.lab.conditions.functorch import func_grad

    if lab.target.kind != "custom_op":
        return
    outcome = func_grad(lab)
    if outcome.state in ("fails", "not supported") and "setup_context" in outcome.detail:
        found = lab.finding(
            f"torch.func.grad raises for {lab.target.name}: PyTorch asks for a setup_context, although the operator has one.",
            advice="If you do not use torch.func.grad, there is nothing to do. Otherwise use torch.autograd.grad, or write a "
            "torch.autograd.Function with setup_context instead of the operator.",
            evidence={
                "thread": "https://github.com/pytorch/pytorch/issues/168393",
                "torch": "2.8 to 2.13; the issue is open",
            },
        )
        yield replace(found, blame="pytorch")
