"""backward differentiates something that has no graph

What it finds
-------------
A call of `.backward()` or `torch.autograd.grad(...)` inside backward, on a value that backward computed itself, where nothing
in backward turns gradients on. Where gradients are turned on, `.backward()` is only remarked upon: it adds to the `.grad` of
everything it reaches.

Why it matters
--------------
Backward runs with gradients off, so what it computes has no graph, and the inner call raises "element 0 of tensors does not
require grad and does not have a grad_fn".

Known problems
--------------
`torch.autograd.backward(...)` is left alone: recomputation needs it to reach the parameters of a checkpointed module.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: RuntimeError as quoted; the same code under `with torch.enable_grad():` gives the right gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS114"
SEVERITY = "error"
EXPLAINS = ("backward-raised",)
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        again = x.detach().requires_grad_()
        y = again * again
        y.backward(grad_output)
        return again.grad


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch.autograd.function import once_differentiable


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            y = again * again
        return torch.autograd.grad(y, again, grad_output)[0]


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None:
        return
    turned_on = _turns_gradients_on(backward)
    for call in backward.calls:
        differentiated = _differentiated(backward, call.node, call.dotted)
        if differentiated is None or backward.in_nested_function(call.node):
            continue
        shown = ast.unparse(call.node.func)
        if not turned_on and _is_computed_here(backward, differentiated):
            yield function.at(
                call.node,
                f"{function.name}.{backward.name} calls {shown}, but backward runs without grad mode: "
                f"'{ast.unparse(differentiated)}' has no graph, and the call raises.",
                advice=f"Compute '{ast.unparse(differentiated)}' inside `with torch.enable_grad():`, and return what torch.autograd.grad returns.",
            )
        elif not turned_on and (called := _called_from_ctx(backward, differentiated)):
            yield function.at(
                call.node,
                f"{function.name}.{backward.name} calls {shown}, but backward runs without grad mode: unless '{called}' turns "
                f"it on itself, '{ast.unparse(differentiated)}' has no graph, and the call raises.",
                advice=f"Call {called} under `with torch.enable_grad():`.",
                severity="warning",
            )
        elif turned_on and call.dotted != "torch.autograd.grad":
            yield function.at(
                call.node,
                f"{function.name}.{backward.name} calls {shown}, which adds to the .grad of every leaf it reaches, not only "
                "of the input in question.",
                advice="Use torch.autograd.grad(outputs, inputs, grad_outputs), which returns what was asked for.",
                severity="info",
            )


def _differentiated(method: Method, node: ast.Call, dotted: str | None) -> ast.expr | None:
    """What the call differentiates: the receiver of .backward(), the first argument of autograd.grad."""
    if dotted == "torch.autograd.grad":
        first = node.args[0] if node.args else None
        if isinstance(first, (ast.Tuple, ast.List)):
            first = first.elts[0] if first.elts else None
        return None if isinstance(first, ast.Starred) else first
    if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
        receiver = node.func.value
        return receiver if method.value(receiver).is_tensor else None
    return None


def _is_computed_here(method: Method, node: ast.expr) -> bool:
    """The result of plain arithmetic or of a torch operation in this body, so no graph came from elsewhere."""
    value = method.resolve(node)
    if isinstance(value, ast.BinOp):
        return all(method.value(side).kind != "unknown" for side in (value.left, value.right))
    if not (isinstance(value, ast.Call) and method.op(value) is not None) or method.sources(value):
        return False
    if isinstance(value.func, ast.Attribute) and method.dotted(value.func) is None:
        return _is_computed_here(method, value.func.value)
    return all(method.value(a).kind != "unknown" for a in value.args)


def _called_from_ctx(method: Method, node: ast.expr) -> str | None:
    """`ctx.run` in `y = ctx.run(x)`: what forward was given to call, run again."""
    value = method.resolve(node)
    if not isinstance(value, ast.Call):
        return None
    function = method.resolve(value.func)
    kept = (
        isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == method.ctx
    )
    return ast.unparse(function) if kept else None


def _turns_gradients_on(method: Method) -> bool:
    words = ("enable_grad", "set_grad_enabled", "inference_mode")
    return method.decorated_with(*words) or any(
        (isinstance(n, ast.Attribute) and n.attr in words) or (isinstance(n, ast.Name) and n.id in words)
        for n in method.nodes
    )
