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
Reading `x.data` in forward is harmless in itself; `detach()` does the same and keeps the check.

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

_MEASURED = know.MEASURED | know.TO_SHAPE | know.TO_INT | know.TO_FLAG


def lint(function: FunctionModel) -> Iterator[Finding]:
    for method in (function.forward, function.setup_context, function.backward):
        for node in method.nodes if method else ():
            if not isinstance(node, ast.Attribute) or node.attr != "data" or method is None:
                continue
            if not method.value(node.value).is_tensor or _only_measured(method, node):
                continue
            name = method.file.source_of(node.value)
            writes = not isinstance(node.ctx, ast.Load)
            does = "replaces the memory of" if writes else "takes"
            yield function.at(
                node,
                f"{function.name}.{method.name} {does} '{name}{'' if writes else '.data'}' behind autograd's back: "
                "changes through it are not counted, so a gradient from overwritten values is silently wrong.",
                advice="Write into a new tensor and return it." if writes else f"Write `{name}.detach()`.",
                argument=name if method.param(name) else None,
                edits=[] if writes else [_detach(method, node)],
                applicability="unsafe",
            )


def _only_measured(method: Method, node: ast.Attribute) -> bool:
    """`x.data.shape`, `x.data.size(0)`: no value is read and none is written."""
    parent = method.file.parents.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in _MEASURED and isinstance(parent.ctx, ast.Load)


def _detach(method: Method, node: ast.Attribute) -> Edit:
    whole, inner = method.file.place(node), method.file.place(node.value)
    return Edit(inner.end_line, inner.end_column, whole.end_line, whole.end_column, ".detach()")
