"""a second save_for_backward replaces the first

What it finds
-------------
Two calls of `ctx.save_for_backward` on one path of forward, the second without what the first saved; and the same with
`mark_dirty` and `mark_non_differentiable`.

Why it matters
--------------
The calls do not add up: the last one wins. backward finds fewer tensors than it unpacks, or the wrong ones; an output that was
marked first stays differentiable.

Known problems
--------------
Calls in different branches, and a later call that repeats everything the earlier one saved, are fine and not reported.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html
Measured on torch 2.13: after save_for_backward(x) and save_for_backward(y), ctx.saved_tensors is (y,); of two outputs marked one
by one, only the second is non-differentiable.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.edits import delete_lines

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Mark, Method, Save

CODE = "GS210"
SEVERITY = "error"
EXPLAINS = ("unpack-count", "backward-raised", "wrong-gradient", "saved-twice", "unused-save")
FIXABLE = True
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


gradsmith_inputs = {
    "Product": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""
GOOD = BAD.replace("(x)\n        ctx.save_for_backward(y)", "(x, y)")


def lint(function: FunctionModel) -> Iterator[Finding]:
    for method in function.before:
        calls: list[Save | Mark] = [*method.context.saves, *method.context.marks]
        for name in ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable"):
            same = [c for c in calls if c.name == name]
            for first, second in itertools.pairwise(same):
                if _follows(method, first.node, second.node) and not _repeats(first, second):
                    yield function.at(
                        second.node,
                        f"{function.name}.{method.name} calls ctx.{name} again: the second call replaces what line "
                        f"{first.node.lineno} {'saved' if name.startswith('save') else 'marked'}.",
                        advice=f"Call ctx.{name} once, with everything.",
                        # What is no longer marked has a gradient that backward leaves out, or is of integers, which torch marks itself.
                        severity="warning" if name == "mark_non_differentiable" else None,
                        edits=[*_joined(method, first, second)],
                        unsafe="backward gets more tensors than before, and has to unpack all of them"
                        if name.startswith("save")
                        else "more tensors are marked than before",
                    )


def _follows(method: Method, first: ast.Call, second: ast.Call) -> bool:
    """Both are statements of one block, so that the second always runs after the first."""
    a, b = method.statement(first), method.statement(second)
    if method.in_nested_function(first) or method.in_nested_function(second) or a is b:
        return False
    parent = method.file.parents.get(a)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and a in block and b in block:
            return block.index(a) < block.index(b)
    return False


def _repeats(first: Save | Mark, second: Save | Mark) -> bool:
    if second.starred or first.starred:
        return second.starred
    return {ast.unparse(e) for e in first.exprs} <= {ast.unparse(e) for e in second.exprs}


def _joined(method: Method, first: Save | Mark, second: Save | Mark) -> Iterator[Edit | None]:
    """The first call's arguments go into the second, and the first call goes."""
    statement = method.statement(first.node)
    alone = isinstance(statement, ast.Expr) and statement.value is first.node
    yield delete_lines(method.file, statement) if alone else None
    if not second.node.args or first.starred:
        yield None
        return
    place = method.file.place(second.node.args[0])
    text = "".join(f"{method.file.source_of(e)}, " for e in first.exprs)
    yield Edit(place.line, place.column, place.line, place.column, text)
