"""something is marked non-differentiable that is not an output

What it finds
-------------
`ctx.mark_non_differentiable(t)` in forward, where `t` is not among the values that forward returns: an input, or something
computed on the way.

Why it matters
--------------
The mark is about outputs. On anything else it has no effect, and the output that was meant stays differentiable.
To say that an input gets no gradient, return None for it in backward.

Known problems
--------------
Returns that the source does not spell out are not judged. Where nothing that is returned was computed with the marked tensor,
nothing is lost: that is information.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html
Measured on torch 2.13: no error, no effect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source import knowledge as know
from gradsmith.source.behind import all_of, made_of
from gradsmith.source.edits import delete_lines

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Mark, Method

CODE = "GS121"
SEVERITY = "warning"
FIXABLE = True
BAD = """
import torch


class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None


def example():
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.randn(4, 3, dtype=torch.float64) > 0


gradsmith_inputs = {"Masked": example}
"""
GOOD = BAD.replace("        ctx.mark_non_differentiable(mask)\n", "")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward = function.forward
    if forward is None or forward.ctx is None or not forward.returns:
        return
    if any(found.elements is None for found in forward.returns):
        return
    returned = [e for found in forward.returns for e in (found.elements or [])]
    for mark in forward.context.marks:
        if mark.name != "mark_non_differentiable" or mark.starred:
            continue
        for marked in mark.exprs:
            role = function.role_of_value(forward, marked)
            if not isinstance(marked, ast.Name) or role not in ("input", "intermediate"):
                continue
            if any(_mentions(forward, marked, e) for e in returned):
                continue
            yield function.at(
                marked,
                f"{function.name}.forward marks '{marked.id}' as non-differentiable, but does not return it: the mark is "
                "about outputs and has no effect here.",
                advice=f"Return None for '{marked.id}' in backward; mark only what forward returns."
                if role == "input"
                else "Mark what forward returns, or delete the call.",
                argument=marked.id if forward.param(marked.id) else None,
                severity=None if any(_is_made_of(forward, e, marked) for e in returned) else "info",
                edits=[_deleted(forward, mark)] if len(mark.exprs) == 1 else (),
            )


def _mentions(method: Method, marked: ast.Name, returned: ast.expr) -> bool:
    """Is the marked tensor, or something that is perhaps the same one, returned here?"""
    if isinstance(returned, ast.Name) and returned.id == marked.id:
        return True
    mine = {(s.owner, s.name) for s in method.sources(marked)}
    return any((s.owner, s.name) in mine for s in method.sources(returned))


def _is_made_of(method: Method, returned: ast.expr, marked: ast.Name) -> bool:
    """Is something returned that was computed with the marked tensor? It has a gradient, which the mark does not stop."""

    def into(part: ast.AST) -> Iterable[ast.AST | None]:
        measured = isinstance(part, ast.Attribute) and part.attr in know.MEASURED | know.TO_SHAPE | know.TO_INT
        return () if measured else all_of(method, part)

    ours = set(method.definitions(marked))
    parts = made_of(method, [returned], into)
    return any(isinstance(p, ast.Name) and p.id == marked.id and ours & set(method.definitions(p)) for p in parts)


def _deleted(method: Method, mark: Mark) -> Edit | None:
    statement = method.statement(mark.node)
    alone = isinstance(statement, ast.Expr) and statement.value is mark.node
    return delete_lines(method.file, statement) if alone else None
