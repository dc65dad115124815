"""forward returns integers, which have no gradient

What it finds
-------------
An output of forward that is certainly a tensor of integers or of truth values, in a Function whose backward computes with
the gradient of that output.

Why it matters
--------------
PyTorch differentiates floating-point and complex tensors only. An output of integers leaves forward with `requires_grad`
False: what backward would do with its gradient is never done, and the layers before it do not train. If it is the only
output, backward is never called; beside another one, its gradient is all zeros. Nothing raises until somebody calls
backward on it.

Known problems
--------------
Indices that are returned beside a result, and whose gradient backward leaves alone, are right and are not reported.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: `Fn.apply(x).requires_grad` is False for `return x.round().long()`, True for `return x.round()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.knowledge import CASTS_TO_INTEGER, COMPARISONS

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS230"
SEVERITY = "error"
EXPLAINS = ("undeclared-surrogate", "wrong-gradient")
_INTEGERS = CASTS_TO_INTEGER | {"argmax", "argmin", "argsort"}
_TYPES = frozenset(f"torch.{t}" for t in ("int8", "int16", "int32", "int64", "uint8", "long", "int", "short"))
BAD = """
import torch


class Level(torch.autograd.Function):
    # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(ctx, x):
        return (8 * x).round().to(torch.int8)

    @staticmethod
    def backward(ctx, grad_output):
        return 8 * grad_output


gradsmith_inputs = {"Level": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(".to(torch.int8)", "").replace("8 * grad_output", "grad_output").replace("(8 * x)", "x")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or function.kind != "function" or forward.inherited:
        return
    if not function.has_gradient:
        return
    for found in forward.returns:
        outputs = found.elements or []
        for i, output in enumerate(outputs):
            kind = _kind(forward, output)
            if kind is None or not _is_used(backward, i, len(outputs)):
                continue
            follows = f"{backward.name} is never called" if len(outputs) == 1 else "its gradient is always zero"
            yield function.at(
                output,
                f"{function.name}.{forward.name} returns {kind}. Such tensors cannot have a gradient in PyTorch, so {follows}.",
                advice="Return the rounded values in the dtype of the input. Where the caller needs integers, convert what `.apply` returns.",
            )


def _kind(forward: Method, output: ast.expr) -> str | None:
    """What it certainly consists of: the last thing that is done to it says so."""
    node = forward.resolve(output)
    if isinstance(node, ast.Compare):
        return "truth values" if forward.value(node).is_tensor else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not forward.value(node).is_tensor:
        return None
    if forward.op(node) in COMPARISONS:
        return "truth values"
    name, types = (
        node.func.attr,
        {forward.file.dotted(a) or "" for a in (*node.args, *(k.value for k in node.keywords))},
    )
    if name == "bool" or (name in ("to", "type") and "torch.bool" in types):
        return "truth values"
    if name in _INTEGERS or (name in ("to", "type") and types & _TYPES):
        return "integers"
    return None


def _is_used(backward: Method, index: int, count: int) -> bool:
    """Whether backward reads the gradient of this output; where they come through a star, only that of a single one is told apart."""
    if len(backward.positional) == count:
        name = backward.positional[index].name
    elif count == 1 and backward.vararg is not None and not backward.positional:
        name = backward.vararg.name
    else:
        return False
    return any(n.id == name and isinstance(n.ctx, ast.Load) for n in backward.of(ast.Name))
