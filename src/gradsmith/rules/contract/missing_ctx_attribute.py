"""backward reads an attribute of ctx that forward sets on some paths only

What it finds
-------------
`ctx.name` that backward reads unconditionally, and that forward (or setup_context) sets in a branch, or after a `return` of another
branch, without setting it on every way to its end.

Why it matters
--------------
On the other paths backward raises "'SquareBackward' object has no attribute 'name'": for the empty batch, in eval mode, without
the option. Forward itself works there, so tests of the output pass.

Known problems
--------------
Reads under an `if`, and through getattr or hasattr, are left alone, and so is a branch of forward that asks `needs_input_grad`:
backward does not run where nothing needs a gradient.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.html
Measured on torch 2.13: the example below raises AttributeError in backward for an empty batch, and is right otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.assured import assured
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS126"
SEVERITY = "warning"
EXPLAINS = ("backward-raised",)
BAD = """
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        if x.numel() == 0:
            return x.clone()
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


gradsmith_inputs = {"Scaled": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0)}
"""
GOOD = BAD.replace(
    "        if x.numel() == 0:\n            return x.clone()\n        ctx.factor = factor\n",
    "        ctx.factor = factor\n        if x.numel() == 0:\n            return x.clone()\n",
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or not function.has_gradient or function.ctx_escapes:
        return
    ways = {method: assured(method) for method in function.before if method.ctx is not None}
    told: set[str] = set()
    for read in function.ctx_reads:
        attribute = f"ctx.{read.attr}"
        writes = [w for w in function.ctx_writes if w.attr == read.attr]
        if read.attr in told or not writes or not isinstance(read.node, ast.Attribute):
            continue
        if _is_conditional(backward, read.node) or any(w.attr == read.attr for w in backward.context.writes):
            continue
        if any(not found.missing_at(attribute) for found in ways.values()):
            continue
        around = [(w.method, w.node) for w in writes] + [
            (m, way) for m, found in ways.items() for way in found.missing_at(attribute) if way is not None
        ]
        if any(_asks_for_gradients(method, node) for method, node in around):
            continue
        told.add(read.attr)
        yield function.at(
            writes[0].node,
            f"{function.name}.{writes[0].method.name} sets ctx.{read.attr} on some paths only, and {backward.name} reads it on "
            "all: on the others that raises AttributeError.",
            advice=f"Set ctx.{read.attr} before the first `if` or `return` of {writes[0].method.name}.",
        )


def _is_conditional(backward: Method, node: ast.AST) -> bool:
    return (
        bool(backward.guards(node))
        or backward.in_nested_function(node)
        or any(isinstance(parent, (ast.Try, ast.IfExp)) for parent in backward.ancestors(node))
    )


def _asks_for_gradients(method: Method, node: ast.AST) -> bool:
    """Where forward leaves early for want of anything to differentiate, backward never runs."""
    tests = [n for guard in method.guards(node) for n in nodes_under(guard.test)]
    return any(isinstance(n, ast.Attribute) and n.attr in ("needs_input_grad", "requires_grad") for n in tests)
