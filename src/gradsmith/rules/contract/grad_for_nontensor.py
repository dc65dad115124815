"""backward returns a gradient for an argument that is not a tensor

What it finds
-------------
An argument of forward that is annotated as a number, a string, a module ..., for which some return of backward gives a
tensor. A default such as `factor=1.0` is not taken as a promise: callers may pass a tensor.

Why it matters
--------------
PyTorch raises in backward: "function ScaleBackward returned a gradient different than None at position 2, but the
corresponding forward input was not a Variable".

Known problems
--------------
Where the annotation is wrong and callers do pass tensors, correct the annotation. A gradient that is computed only if
`ctx.needs_input_grad` asks for it is None for a number, and is not reported.

References
----------
Measured on torch 2.13: RuntimeError as quoted.
https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.edits import replace

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS108"
SEVERITY = "error"
EXPLAINS = ("backward-raised",)
FIXABLE = True
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor: float):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.factor, (grad_output * x).sum()


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor: float):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


gradsmith_inputs = {"Scale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""
# Lists and tuples of tensors have a rule of their own: container-input.
_PLAIN = frozenset(("int", "float", "number", "bool", "str", "dtype", "device", "module", "callable", "shape"))


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or forward.inherited or not function.has_gradient:
        return
    for param in forward.positional:
        if param.annotation is None or param.declared.kind not in _PLAIN or param.declared.optional:
            continue
        for found in backward.returns:
            if found.elements is None or param.index >= len(found.elements):
                continue
            gradient = found.elements[param.index]
            if not _is_computed(backward, gradient):
                continue
            yield function.at(
                gradient,
                f"{function.name}.{backward.name} returns a gradient for '{param.name}', which is annotated as "
                f"{param.declared.kind}: PyTorch raises if backward returns a gradient for an input that is not a tensor.",
                advice=f"Return None for '{param.name}'. If you need its gradient, pass a tensor and annotate it as one.",
                argument=param.name,
                edits=[replace(backward.file, gradient, "None")] if gradient in _literal(found.node) else (),
                unsafe=f"if somebody passes a tensor for '{param.name}', it gets no gradient",
            )


def _is_computed(method: Method, node: ast.expr) -> bool:
    """Certainly a tensor, on every path and under no condition."""
    value = method.value(node)
    if not value.is_tensor or value.optional:
        return False
    nodes: list[ast.AST] = [node]
    if isinstance(node, ast.Name):
        nodes += [b.node for b in method.definitions(node)]
    return all(method.needs_tested(n) == frozenset() for n in nodes)


def _literal(node: ast.Return) -> list[ast.expr]:
    return node.value.elts if isinstance(node.value, ast.Tuple) else []
