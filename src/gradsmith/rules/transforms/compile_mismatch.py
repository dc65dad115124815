"""torch.compile gives a different result from eager mode.

What it finds
-------------
The subject is compiled (aot_eager; at level deep also inductor, and dynamic shapes) as one graph, or with graph breaks
where one graph does not do, and outputs and gradients are compared with eager mode. Where two inputs are alike, the
same is done with one tensor passed as both.

Why it matters
--------------
A branch on `torch.compiler.is_compiling()`, or a trace that misses a side effect, trains a model that differs from the one that
was tested.

Known problems
--------------
Functions that write into their input (mark_dirty) get wrong gradients from aot_autograd itself when the input is an argument
of the compiled function: measured on torch 2.13, reported with blame `pytorch` as a remark.

References
----------
https://github.com/pytorch/pytorch/issues/133491, https://github.com/pytorch/pytorch/issues/180642
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source.outside import Outside

CODE = "GS603"
SEVERITY = "error"
DEMONSTRATION = "compile"
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
        if torch.compiler.is_compiling():
            return grad_output * 3 * x
        return grad_output * 3 * x**2


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("grad_output * 3 * x\n", "3 * grad_output * x**2\n")


def probe(lab: Lab) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.lab.conditions import compiled
    from gradsmith.lab.snippet import demonstration
    from gradsmith.rules.transforms import used_outside

    columns = [("aot_eager", compiled.aot_eager), ("aot_eager, one tensor passed twice", compiled.aliased)]
    if lab.level == "deep":
        columns += [("inductor", compiled.inductor), ("aot_eager, dynamic shapes", compiled.dynamic)]
    for backend, condition in columns:
        outcome = condition(lab)
        if outcome.state == "fails" and outcome.differs:
            dirty = any(call.dirty for call in lab.baseline.run.trace.forwards)
            use = used_outside(lab, "compiler", "state", "draw", "thread") if not dirty else None
            found = lab.finding(
                f"{lab.target.name} compiled with torch.compile (backend {backend}) gives a different result from eager mode: {outcome.differs}."
                + (" PyTorch drops mark_dirty here (pytorch#133491; measured on 2.13)." if dirty else ""),
                severity="info" if dirty else None,  # a Function that is right can do nothing about it
                advice="Clone the input inside the compiled function before the in-place Function."
                if dirty
                else _advice(use),
                line=use.line if use is not None else None,
            )
            twins = compiled.with_twins(lab) if condition is compiled.aliased else None
            shown = demonstration(lab, twins or lab.precise[1], "compile")
            yield replace(found, reproduce=shown, blame="pytorch" if dirty else "user")
            return


def _advice(use: Outside | None) -> str:
    if use is None:
        return (
            "Look in forward and backward for side effects, and for values that are read from outside: torch.compile runs them "
            "only once, when it traces."
        )
    if use.kind == "compiler":
        return f"Let {use.method.name} compute the same on both sides of `{use.shown}` (line {use.line})."
    return (
        f"Do without `{use.shown}` (line {use.line}): torch.compile runs this line only once, when it traces. Pass what it "
        "gives as an argument of forward."
    )
