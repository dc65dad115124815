"""an input is marked dirty but not returned

What it finds
-------------
`ctx.mark_dirty(x)` in a forward none of whose returns gives back `x` itself: something else is returned, a view or a copy of
it, or what was marked is not an input.

Why it matters
--------------
A tensor that was changed in place must leave forward as an output, because its history is now this Function. PyTorch
raises: "Some elements marked as dirty during the forward method were not returned as output".

Known problems
--------------
Returns that the source does not spell out are not judged.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_dirty.html
Measured on torch 2.13: RuntimeError as quoted, also when nothing requires grad.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS120"
SEVERITY = "error"
EXPLAINS = ("forward-raised", "inplace-input")
BAD = """
import torch


class ClampedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)


gradsmith_inputs = {"ClampedSum": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) * 1,)}
"""
GOOD = """
import torch


class ClampedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0).sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)


gradsmith_inputs = {"ClampedSum": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) * 1,)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward = function.forward
    if forward is None or forward.ctx is None or not forward.returns:
        return
    returned: list[ast.expr] = []
    for found in forward.returns:
        returned += found.elements or ([found.value] if found.value is not None else [])
    if any(found.elements is None and not isinstance(found.value, ast.BinOp) for found in forward.returns):
        return
    for mark in forward.context.marks:
        if mark.name != "mark_dirty" or mark.starred or forward.guards(mark.node):
            continue
        for marked in mark.exprs:
            if isinstance(marked, ast.Name) and not any(_may_be(forward, marked, e) for e in returned):
                yield function.at(
                    marked,
                    f"{function.name}.forward marks '{marked.id}' as dirty but does not return it: apply raises RuntimeError.",
                    advice=f"Compute a new tensor instead of changing '{marked.id}' in place, and leave mark_dirty out. If callers want '{marked.id}' "
                    f"changed, return '{marked.id}' as an output as well.",
                    argument=marked.id if forward.param(marked.id) else None,
                )


def _may_be(method: Method, marked: ast.Name, returned: ast.expr) -> bool:
    """Could the returned expression be the very tensor that was marked?"""
    if isinstance(returned, ast.Name) and returned.id == marked.id:
        return True
    mine = {(s.owner, s.name) for s in method.sources(marked)}
    if any((s.owner, s.name) in mine and s.same_object for s in method.sources(returned)):
        return True
    if isinstance(returned, ast.Name):
        return method.value(returned).kind == "unknown" or bool(
            {b.value for b in method.definitions(returned)} & {b.value for b in method.definitions(marked)} - {None}
        )
    return not (isinstance(returned, ast.BinOp) or method.value(returned).is_tensor)
