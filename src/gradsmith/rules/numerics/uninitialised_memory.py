"""Uninitialised memory reaches the result.

What it finds
-------------
Memory from `torch.empty` is filled with NaN (PyTorch does that in deterministic mode), and forward and backward are run
again. Results that were finite and are NaN now depend on memory that nobody wrote.

Why it matters
--------------
`torch.empty` often returns zeros in a fresh process, so the test passes; in a long run it returns what was there before.

Known problems
--------------
Memory that an extension allocates on its own is not filled.

References
----------
https://github.com/pytorch/FBGEMM/pull/5754, https://github.com/fla-org/flash-linear-attention/pull/892
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS317"
SEVERITY = "error"
DEMONSTRATION = "uninitialised"
EXPLAINS = (
    "wrong-gradient",
    "undeclared-surrogate",
    "nonlinear-backward",
    "frozen-input",
    "not-repeatable",
    "unused-output",
    "class-state",
    "random-backward",
    "nonfinite-gradient",
    "layout-dependent",
    "nondeterministic",
    "wrong-second-order",
    "ignored-grad-output",
    "shape-dependent",
    "low-precision",
    "no-autocast",
    *MISMATCHES,
)
BAD = """
import torch


class EvenRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return 2 * x[::2]

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output.new_empty(ctx.shape)
        grad[::2] = 2 * grad_output
        return grad


gradsmith_inputs = {"EvenRows": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("new_empty", "new_zeros")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.uninitialised import poisoned

    for name, kind in poisoned(lab):
        yield lab.finding(
            f"{lab.target.name} returns memory that nothing was written to: {kind} '{name}' is NaN when gradsmith fills the "
            "memory of torch.empty with NaN.",
            at="gradient" if kind == "the gradient of" else None,
            argument=name if kind == "the gradient of" else None,
            advice="Use new_zeros or zeros_like instead of empty where not every element is written.",
        )
        return
