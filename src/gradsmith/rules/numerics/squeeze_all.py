"""`.squeeze()` without a dimension removes every dimension of size 1

What it finds
-------------
In backward, `squeeze()` without a dimension on the result of a reduction that kept its dimension (`keepdim=True`).

Why it matters
--------------
It is meant to remove the reduced dimension. For a batch of one sample, or a single channel, it removes that dimension as well, and the
gradient no longer has the shape of the input: PyTorch raises, or broadcasts it to a wrong one further on.

Known problems
--------------
Only reductions whose dimension is written out are looked at.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.squeeze.html (its warning about a batch of size 1)
Measured on torch 2.13: the example below raises "returned an invalid gradient" for x of shape (4, 1), and is right for (4, 3).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source import knowledge as know
from gradsmith.source import torch_ops

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS332"
SEVERITY = "warning"
EXPLAINS = ("shape-dependent", "gradient-shape")
FIXABLE = True
BAD = """
import torch


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0, keepdim=True).squeeze()


def example():
    made = torch.randn(4, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    return tuple(tensor.requires_grad_() for tensor in made)


gradsmith_inputs = {"AddBias": example}
"""
GOOD = BAD.replace("grad_output.sum(0, keepdim=True).squeeze()", "grad_output.sum(0)")


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    for call in backward.calls if backward is not None else ():
        if call.op != "squeeze" or backward is None:
            continue
        is_method = isinstance(call.node.func, ast.Attribute) and backward.dotted(call.node.func) != "torch.squeeze"
        given = call.node.args if is_method else call.node.args[1:]
        if given or call.node.keywords or (not is_method and not call.node.args):
            continue
        inner = call.node.func.value if is_method and isinstance(call.node.func, ast.Attribute) else call.node.args[0]
        kept = _kept_dimension(backward, inner)
        if kept is None or _is_shaped_again(backward, call.node):
            continue
        shown = ast.unparse(call.node)
        yield function.at(
            call.node,
            f"{function.name}.{backward.name}: `{shown}` removes every dimension of size 1, not only dimension {kept}: the gradient gets a "
            "wrong shape where the input itself has a dimension of size 1.",
            advice=f"Write `.squeeze({kept})`, or reduce without keepdim.",
            edits=[_with_dimension(backward, call.node, kept)],
            unsafe="the gradient keeps other dimensions of size 1 from then on",
        )


def _kept_dimension(method: Method, node: ast.expr) -> str | None:
    """The dimension, as written, of a reduction that keeps it; None for anything else."""
    made = method.resolve(node)
    if not isinstance(made, ast.Call) or method.op(made) not in torch_ops.REDUCTIONS:
        return None
    named = {k.arg: k.value for k in made.keywords}
    keeps = named.get("keepdim", named.get("keepdims"))
    if not (isinstance(keeps, ast.Constant) and keeps.value is True):
        return None
    own = made.args[1:] if (method.dotted(made.func) or "").startswith("torch.") else made.args
    given = named.get("dim", named.get("axis", own[0] if own else None))
    if given is None or not all(
        isinstance(n, (ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.USub, ast.Load)) for n in ast.walk(given)
    ):
        return None
    return ast.unparse(given)


def _is_shaped_again(method: Method, node: ast.Call) -> bool:
    """`.squeeze().view(shape)`: whatever was removed, the shape is said right after."""
    used = method.file.parents.get(node)
    called = isinstance(used, ast.Attribute) and isinstance(method.file.parents.get(used), ast.Call)
    return called and isinstance(used, ast.Attribute) and used.attr in know.SHAPES_ANEW


def _with_dimension(method: Method, node: ast.Call, dimension: str) -> Edit:
    place = method.file.place(node)
    comma = ", " if node.args else ""
    return Edit(place.end_line, place.end_column - 1, place.end_line, place.end_column - 1, f"{comma}{dimension}")
