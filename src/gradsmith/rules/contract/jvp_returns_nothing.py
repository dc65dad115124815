"""jvp returns nothing

What it finds
-------------
A `jvp` of a Function that ends without returning a value on any path.

Why it matters
--------------
jvp must return one tangent per output. Without one, forward-mode differentiation fails with an internal assertion of
PyTorch that names neither the Function nor the missing return.

Known problems
--------------
A jvp that only raises says that forward mode is not supported, and is left alone. One that is only `pass` is a warning.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: RuntimeError "INTERNAL ASSERT FAILED" from autograd_meta.cpp.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS115"
SEVERITY = "error"
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def jvp(ctx, x_tangent):
        tangent = x_tangent * 2


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("tangent = x_tangent * 2", "return x_tangent * 2")


def lint(function: FunctionModel) -> Iterator[Finding]:
    jvp = function.jvp
    if jvp is None or jvp.inherited or any(isinstance(n, (ast.Raise, ast.Yield)) for n in jvp.nodes):
        return
    if any(found.value is not None for found in jvp.returns):
        return
    yield function.at(
        jvp.node,
        f"{function.name}.jvp returns nothing: forward-mode differentiation of {function.name} fails with an internal error "
        "of PyTorch.",
        advice="Return one tangent for every output, or delete jvp.",
        severity="warning" if jvp.is_stub else None,
    )
