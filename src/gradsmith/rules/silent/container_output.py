"""forward returns its tensors in a list or a dict

What it finds
-------------
A forward that returns a list or a dict, or a tuple with a list of tensors in it.

Why it matters
--------------
PyTorch looks for tensors in a returned tuple only. What sits in a list or a dict leaves forward without a gradient:
`requires_grad` is False, backward is never called, and the layers before it do not train. Nothing raises.

Known problems
--------------
Custom ops may return lists, and are not reported.

References
----------
https://github.com/pytorch/pytorch/issues/87713
Measured on torch 2.13: `Fn.apply(x)[0].requires_grad` is False for `return [a, b]`, True for `return a, b`.
https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.edits import replace

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS206"
SEVERITY = "error"
EXPLAINS = ("none-for-tensor", "wrong-gradient", "backward-raised", "false-non-differentiable")
FIXABLE = True
BAD = """
import torch


class SumAndDifference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return [x + y, x - y]

    @staticmethod
    def backward(ctx, grad_sum, grad_difference):
        return grad_sum + grad_difference, grad_sum - grad_difference


gradsmith_inputs = {
    "SumAndDifference": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""
GOOD = BAD.replace("return [x + y, x - y]", "return x + y, x - y")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward = function.forward
    if function.kind != "function" or forward is None or forward.inherited or not function.has_gradient:
        return
    bases = [forward.file.dotted(b) or "" for b in getattr(function.node, "bases", ())]
    if any(b.endswith("NestedIOFunction") for b in bases):
        return
    for found in forward.returns:
        value = found.node.value
        if value is None:
            continue
        kind = forward.value(value).kind
        if kind in ("list", "dict"):
            yield function.at(
                value,
                f"{function.name}.forward returns a {kind}: PyTorch finds no tensors in it, so the outputs have no gradient "
                f"and {function.name}.backward is never called.",
                advice="Return a tuple of tensors.",
                edits=[_as_tuple(forward, value)] if kind == "list" else (),
            )
            continue
        for element in (found.elements or []) if found.is_tuple else ():
            literal = forward.resolve(element)
            if isinstance(literal, ast.List) and literal.elts and all(_is_float(forward, e) for e in literal.elts):
                yield function.at(
                    element,
                    f"{function.name}.forward returns a list inside its tuple: the tensors in it have no gradient.",
                    advice="Return them as elements of the tuple: `return y, *parts`.",
                )


def _is_float(method: Method, node: ast.expr) -> bool:
    value = method.value(node)
    return value.is_tensor and not value.constant and value.elements not in ("integer", "bool")


def _as_tuple(method: Method, value: ast.expr) -> Edit | None:
    text = method.file.source_of(value)
    if not isinstance(value, ast.List):
        return replace(method.file, value, f"tuple({text})")
    comma = "," if len(value.elts) == 1 and not text[:-1].rstrip().endswith(",") else ""
    return replace(method.file, value, f"({text[1:-1]}{comma})")
