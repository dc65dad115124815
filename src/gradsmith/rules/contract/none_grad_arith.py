"""backward computes with a gradient that may be None

What it finds
-------------
forward calls `ctx.set_materialize_grads(False)`, has several outputs, and backward uses a grad_output in arithmetic or as
a tensor without ever testing it.

Why it matters
--------------
The call asks PyTorch to pass None instead of zeros for outputs that nobody used. A user who takes only one of the outputs
then gets "unsupported operand type(s) for +: 'NoneType' and 'Tensor'" from inside backward.

Known problems
--------------
Any test of the gradient in backward (`is None`, truth, a call of another function with it) is taken as care enough.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.set_materialize_grads.html
In a survey of 800 public Functions 14 make the call, and 3 of them do not test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Param

CODE = "GS109"
SEVERITY = "error"
EXPLAINS = ("unused-output", "backward-raised", "wrong-gradient")
BAD = """
import torch


class SumAndProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx, grad_sum, grad_product):
        x, y = ctx.saved_tensors
        return grad_sum + grad_product * y, grad_sum + grad_product * x


gradsmith_inputs = {
    "SumAndProduct": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""
GOOD = BAD.replace("        ctx.set_materialize_grads(False)\n", "")


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or function.materializes or not function.has_gradient:
        return
    if any(m.name == "mark_non_differentiable" for m in function.marks):
        return  # the marked outputs get None, the others never do unless there are several
    used = [p for p in backward.positional if p.role == "grad_output" and _uses(backward, p)]
    if len(used) < 2 or len(used) != len(backward.params):
        return
    for param in used:
        place = _untested(backward, param)
        if place is not None:
            yield function.at(
                place,
                f"{function.name}.{backward.name} computes with '{param.name}', which is None whenever its output is not "
                "used: forward called set_materialize_grads(False).",
                advice=f"Test `{param.name} is None` first, or leave out set_materialize_grads(False).",
                argument=param.name,
            )


def _uses(method: Method, param: Param) -> list[ast.Name]:
    return [n for n in method.of(ast.Name) if n.id == param.name and n in method.flow.at]


def _untested(method: Method, param: Param) -> ast.AST | None:
    """Where it is computed with, if nothing in backward looks at it first."""
    first: ast.AST | None = None
    for name in _uses(method, param):
        if method.param_of(name) is not param:
            return None
        parent = method.file.parents.get(name)
        if isinstance(parent, (ast.BinOp, ast.Attribute)) or (parent is not None and method.op(parent) is not None):
            first = first or parent
        elif not isinstance(parent, (ast.UnaryOp, ast.Tuple, ast.Return)):
            return None  # a test, a list, a function of the author's
        if any(name in nodes_under(guard.test) for guard in method.guards(name)):
            return None
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            return None
    return first
