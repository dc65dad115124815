"""`.data` hides reads and writes from autograd

What it finds
-------------
`x.data` in forward, setup_context or backward, where `x` is certainly a tensor. Attributes of other objects that are
called `data`, such as `ctx.data`, are left alone, and so is `x.data.shape`, which reads no value.

Why it matters
--------------
`.data` is a second handle on the same memory with a version counter of its own. Writes through it are not counted, so
a saved tensor that is overwritten gives a wrong gradient where PyTorch would have raised (measured on torch 2.13: 0
instead of 2 after `z.data.zero_()`, an error after `z.detach().zero_()`); in backward it cuts the
graph, and the gradient of the gradient is silently zero.

Known problems
--------------
Reading `x.data` in forward is harmless in itself; `detach()` does the same and keeps the check. `.data` of what
forward has made itself is not reported.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
https://github.com/pytorch/pytorch/issues/6990
https://github.com/pytorch/pytorch/issues/30987
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS214"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = True
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.data * x.data

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""

_OVERWRITTEN = (
    "if somebody writes into this tensor later, autograd does not notice, and the gradient is wrong without an error."
)
_TWICE = "a second derivative lacks this part, without an error."
_MEASURED = know.MEASURED | know.TO_SHAPE | know.TO_INT | know.TO_FLAG


def lint(function: FunctionModel) -> Iterator[Finding]:
    for method in (function.forward, function.setup_context, function.backward):
        told: list[ast.Attribute] = []
        nodes = [*_reported(method)] if method is not None else []
        for node in nodes:
            if method is None or any(_same_place(method, node, other) for other in told):
                continue
            told.append(node)
            name = method.file.source_of(node.value)
            writes = not isinstance(node.ctx, ast.Load)
            does = "replaces the memory of" if writes else "uses"
            cut = method is function.backward and not writes and not _written_through(method, node)
            if cut and function.once_differentiable:  # there is no second derivative that could lack anything
                continue
            yield function.at(
                node,
                f"{function.name}.{method.name} {does} '{name}{'' if writes else '.data'}': "
                + (_TWICE if cut else _OVERWRITTEN),
                advice="Write into a new tensor and return it."
                if writes
                else f"Write `{name}.detach()`: the same values, and autograd notices a change.",
                argument=name if method.param(name) else None,
                edits=[] if writes else [_detach(method, other) for other in nodes if _same_place(method, node, other)],
                unsafe="code that writes into this tensor may raise from then on, because autograd notices it",
            )


def _reported(method: Method) -> Iterator[ast.Attribute]:
    for node in method.of(ast.Attribute):
        if node.attr != "data" or not method.value(node.value).is_tensor:
            continue
        # What forward has made itself nobody else holds yet, and PyTorch notes versions only when it returns.
        if method.name != "backward" and not method.sources(node.value):
            continue
        if not _only_measured(method, node) and not _handed_over(method, node):
            yield node


def _written_through(method: Method, node: ast.Attribute) -> bool:
    """`saved.data.fill_(0)`: into memory that somebody else has."""
    parent = method.file.parents.get(node)
    inplace = isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__")
    stored = isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
    return (inplace or stored) and bool(method.sources(node.value))


def _same_place(method: Method, one: ast.Attribute, other: ast.Attribute) -> bool:
    """Reads of one tensor in one line are one finding, which changes all of them."""
    alike = isinstance(one.ctx, ast.Load) and isinstance(other.ctx, ast.Load) and one.lineno == other.lineno
    return one is other or (alike and method.file.source_of(one.value) == method.file.source_of(other.value))


def _only_measured(method: Method, node: ast.Attribute) -> bool:
    """`x.data.shape`, `x.data.size(0)`: no value is read and none is written."""
    parent = method.file.parents.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in _MEASURED and isinstance(parent.ctx, ast.Load)


def _handed_over(method: Method, node: ast.Attribute) -> bool:
    """Only compiled or foreign code gets it: autograd sees nothing of that, with or without `.data`."""
    if not isinstance(node.ctx, ast.Load):
        return False
    whole: ast.AST = node
    while isinstance(parent := method.file.parents.get(whole), (ast.Attribute, ast.Call)) and (
        isinstance(parent, ast.Attribute) or (parent.func is whole and method.op(parent) in know.MAYBE_SAME | {"numpy"})
    ):
        whole = parent
        if isinstance(whole, ast.Call) and method.op(whole) == "numpy":
            return True  # an array by now: what is written into it autograd does not see, either
    if _is_foreign_argument(method, whole):
        return True
    statement = method.file.parents.get(whole)
    if not (
        isinstance(statement, ast.Assign) and statement.value is whole and isinstance(statement.targets[0], ast.Name)
    ):
        return False
    reads = [n for n in method.of(ast.Name) if any(b.value is whole for b in method.definitions(n))]
    return bool(reads) and all(_is_foreign_argument(method, read) for read in reads)


def _is_foreign_argument(method: Method, node: ast.AST) -> bool:
    call = method.file.parents.get(node)
    if not isinstance(call, ast.Call) or node not in call.args or method.op(call) is not None:
        return False
    dotted = method.dotted(call.func) or ""
    return isinstance(call.func, ast.Subscript) or ("." in dotted and not dotted.startswith("torch."))


def _detach(method: Method, node: ast.Attribute) -> Edit:
    whole, inner = method.file.place(node), method.file.place(node.value)
    return Edit(inner.end_line, inner.end_column, whole.end_line, whole.end_column, ".detach()")
