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
    cleared = {
        ast.unparse(t.value) for n in backward.nodes if isinstance(n, ast.Assign) for t in n.targets if _is_grad(t)
    }
    for found in backward.returns:
        for part in nodes_under(found.node):
            grad = backward.resolve(part) if isinstance(part, ast.Name) else part
            if not _is_grad(grad) or ast.unparse(grad.value) in cleared or not _outlives(backward, grad.value):
                continue
            shown = ast.unparse(grad)
            yield function.at(
                part,
                f"{function.name}.{backward.name} returns '{shown}', to which every call of backward adds: a second call over the same "
                "graph returns the sum.",
                advice=f"Use torch.autograd.grad(outputs, {ast.unparse(grad.value)}, grad_outputs), which returns a new tensor.",
            )
            return


def _accumulates(node: ast.Call, dotted: str | None) -> bool:
    named = isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
    return named and (dotted == "torch.autograd.backward" or not (dotted or "").startswith("torch."))


def _is_grad(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _outlives(backward: Method, node: ast.expr) -> bool:
    """The very tensor that was saved, or kept on ctx: not a view or a copy that this call made."""
    return any(s.owner in ("saved", "ctx") and s.same_object and s.certain for s in backward.sources(node))
