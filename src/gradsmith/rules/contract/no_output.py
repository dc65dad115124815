"""forward returns nothing

What it finds
-------------
A forward without a `return` that has a value, in a Function that has a backward.

Why it matters
--------------
`apply` then gives back None, and backward is never called: nothing that PyTorch can differentiate was returned. The error
comes later and elsewhere, where somebody calculates with None, or not at all.

Known problems
--------------
A forward that only writes into a buffer it was handed returns nothing on purpose; it has no gradient either.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: apply returns None without an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.returns import returns_nothing

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS123"
SEVERITY = "error"
EXPLAINS = ("forward-raised", "backward-raised", "unused-save")
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("y = x * x", "return x * x")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or function.kind != "function" or forward.inherited:
        return
    if not returns_nothing(forward) or not function.has_gradient:
        return
    yield function.at(
        forward.node.body[-1],
        f"{function.name}.{forward.name} returns nothing: apply gives back None, and {backward.name} is never called.",
        advice=_advice(forward.node.body[-1]),
    )


def _advice(last: ast.stmt) -> str:
    target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else None
    result = target.id if isinstance(target, ast.Name) else "..."
    return f"Write `return {result}` at the end of forward."
