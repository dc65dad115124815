"""backward tells ctx something that PyTorch ignores

What it finds
-------------
`ctx.save_for_backward`, `ctx.mark_dirty`, `ctx.mark_non_differentiable` or `ctx.set_materialize_grads` called in backward.

Why it matters
--------------
PyTorch reads these once, when forward has returned. In backward they do nothing: a second backward still sees what forward
saved, and a derivative of backward does not know of them.

Known problems
--------------
None known.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html
Measured on torch 2.13: after `ctx.save_for_backward(g)` in backward, `grad_fn.saved_tensors` is what forward saved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.edits import delete_lines

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Mark, Method, Save

CODE = "GS116"
SEVERITY = "warning"
FIXABLE = True
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        ctx.save_for_backward(grad_output, x)
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("        ctx.save_for_backward(grad_output, x)\n", "")


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None:
        return
    ignored: list[Save | Mark] = [*backward.context.saves, *backward.context.marks]
    for call in ignored:
        if not backward.in_nested_function(call.node):
            yield function.at(
                call.node,
                f"{function.name}.{backward.name} calls ctx.{call.name}, which has an effect only in forward (or setup_context): "
                "in backward it does nothing.",
                advice="Delete this call. If backward needs something that is not saved yet, save it in forward."
                if call.name.startswith("save")
                else f"Delete this call, and call ctx.{call.name} in forward if it is needed.",
                edits=[_deleted(backward, call.node)],
            )


def _deleted(method: Method, call: ast.Call) -> Edit | None:
    statement = method.statement(call)
    return delete_lines(method.file, statement) if isinstance(statement, ast.Expr) and statement.value is call else None
