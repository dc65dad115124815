"""A compiled torch.func.grad ignores the custom backward.

What it finds
-------------
torch.func.grad of the Function is compiled and compared with the same in eager mode. PyTorch up to 2.13 inlines forward there,
and differentiates it by autograd: the custom backward is not called.

Why it matters
--------------
For an exact gradient the number is the same, and only the speed is lost. A surrogate gradient (straight-through, clipping) is
silently replaced by the derivative, which may be zero everywhere.

Known problems
--------------
A defect of PyTorch, seen in 2.6 to 2.13; 2.15 is free of it. Reported as `info`, because most users never compile
torch.func.grad.

References
----------
https://github.com/pytorch/pytorch/issues/193279
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS606"
SEVERITY = "info"
LEVEL = "standard"
FIXED_IN = "2.15"
BAD = """
import torch


class Round(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(x):
        return torch.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


gradsmith_inputs = {"Round": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("  # gradsmith: surrogate[straight-through]", "").replace("torch.round(x)", "x * 1.0")


def probe(lab: Lab) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.lab.conditions.functorch import compiled_func_grad
    from gradsmith.lab.subject.target import has_setup_context

    cls = lab.target.function
    if cls is None or not has_setup_context(cls):
        return
    outcome = compiled_func_grad(lab)
    if outcome.state == "fails" and outcome.differs:
        found = lab.finding(
            f"torch.compile(torch.func.grad(...)) does not call {lab.target.name}.backward, and differentiates forward instead: "
            f"{outcome.differs}.",
            advice="Keep torch.func.grad out of compiled code, or compile torch.autograd.grad / .backward() instead.",
            evidence={
                "thread": "https://github.com/pytorch/pytorch/issues/193279",
                "torch": "2.6 to 2.13; 2.15 is free of it",
            },
        )
        yield replace(found, blame="pytorch")
