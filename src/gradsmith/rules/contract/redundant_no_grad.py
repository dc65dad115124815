"""forward turns gradients off, which they are already

What it finds
-------------
`with torch.no_grad():` or `@torch.no_grad()` in forward of a Function.

Why it matters
--------------
PyTorch runs forward with gradients off. The block changes nothing, and makes readers believe that the code around it is
recorded.

Known problems
--------------
Where other code calls forward directly, outside `apply`, the block does have an effect.

References
----------
Measured on torch 2.13: `torch.is_grad_enabled()` is False in forward.
https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS119"
SEVERITY = "info"
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.no_grad():
            return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("        with torch.no_grad():\n            return", "        return")
_OFF = ("torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward = function.forward
    if function.kind != "function" or forward is None or forward.inherited:
        return
    if any(n.attr in ("enable_grad", "set_grad_enabled") for n in forward.of(ast.Attribute)):
        return
    blocks = [item.context_expr for n in forward.of(ast.With) for item in n.items]
    for node in (*blocks, *forward.node.decorator_list):
        called = node.func if isinstance(node, ast.Call) else node
        if forward.dotted(called) in _OFF and not forward.in_nested_function(node):
            yield function.at(
                node,
                f"{function.name}.forward turns gradients off, but PyTorch runs forward without gradients anyway.",
                advice="Leave no_grad out.",
            )
