"""backward returns a `.grad` that earlier calls have added to

What it finds
-------------
backward calls `.backward()` (or `torch.autograd.backward`) and returns `t.grad`, where `t` is a saved tensor, an attribute of ctx or
another tensor that outlives the call, and nothing sets `t.grad` to None before.

Why it matters
--------------
`.backward()` adds to `.grad`. The first call is right; the second, over a retained graph or in the next step with the same tensor,
returns the sum of both. Where `t` is also trained by somebody else, both get the other's gradient.

Known problems
--------------
A detached copy made in the same backward starts with no `.grad` and is left alone.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
Measured on torch 2.13: the example below returns 6 for x = 3 at the first backward and 12 at the second over the same graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from gradsmith.findings import Finding
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS231"
SEVERITY = "warning"
EXPLAINS = ("nested-backward",)
BAD = """
import torch
from torch.autograd.function import once_differentiable


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.inner = x.detach().requires_grad_()
        with torch.enable_grad():
            ctx.result = ctx.inner * ctx.inner
        return ctx.result.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        torch.autograd.backward(ctx.result, grad_output, retain_graph=True)
        return ctx.inner.grad


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    "        torch.autograd.backward(ctx.result, grad_output, retain_graph=True)\n        return ctx.inner.grad",
    "        return torch.autograd.grad(ctx.result, ctx.inner, grad_output, retain_graph=True)[0]",
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or not any(_accumulates(call.node, call.dotted) for call in backward.calls):
        return
    cleared = {ast.unparse(t.value) for n in backward.of(ast.Assign) for t in n.targets if _is_grad(t)}
    for found in backward.returns:
        for part in nodes_under(found.node):
            grad = backward.resolve(part) if isinstance(part, ast.Name) else part
            if not _is_grad(grad) or ast.unparse(grad.value) in cleared or not _outlives(backward, grad.value):
                continue
            shown = ast.unparse(grad)
            yield function.at(
                part,
                f"{function.name}.{backward.name} returns '{shown}'. Every call of backward adds to this tensor, so a second call over the "
                "same graph returns the sum of both.",
                advice=_instead(backward, grad.value),
            )
            return


def _instead(backward: Method, leaf: ast.expr) -> str:
    """The call that returns what the other one adds, with the user's own arguments where they are plain."""
    (call, *more) = [c for c in backward.calls if _accumulates(c.node, c.dotted)]
    inner = ast.unparse(leaf)
    node = call.node
    given = [*node.args]
    if call.dotted != "torch.autograd.backward" and isinstance(node.func, ast.Attribute):
        given.insert(0, node.func.value)
    if more or not 1 <= len(given) <= 2 or any(isinstance(g, ast.Starred) for g in given):
        return (
            f"Use torch.autograd.grad(outputs, {inner}, grad_outputs)[0], which returns a new tensor and adds to none."
        )
    words = [ast.unparse(given[0]), inner, *map(ast.unparse, given[1:]), *map(ast.unparse, node.keywords)]
    return f"Delete line {node.lineno}, and return `torch.autograd.grad({', '.join(words)})[0]`: a new tensor, which no other call adds to."


def _accumulates(node: ast.Call, dotted: str | None) -> bool:
    named = isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
    return named and (dotted == "torch.autograd.backward" or not (dotted or "").startswith("torch."))


def _is_grad(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _outlives(backward: Method, node: ast.expr) -> bool:
    """The very tensor that was saved, or kept on ctx: not a view or a copy that this call made."""
    return any(s.owner in ("saved", "ctx") and s.same_object and s.certain for s in backward.sources(node))
