"""forward uses a parameter from outside

What it finds
-------------
forward uses a name of the file, of the enclosing function or of the enclosing module that was made with
`torch.nn.Parameter(...)` or `requires_grad=True`, instead of taking it as an argument.

Why it matters
--------------
Autograd knows only what was passed to `apply`. The parameter gets no gradient; the optimizer skips it without a word.

Known problems
--------------
Constants (`SCALE = torch.tensor(2.0)`) need no gradient and are not reported. A backward that adds to `.grad` itself is not
reported.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: `w.grad` is None after `(Fn.apply(x)).sum().backward()` with `w` read from the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel, FunctionModel, Method

CODE = "GS208"
SEVERITY = "warning"
EXPLAINS = ("hidden-parameter",)
BAD = """
import torch

gain = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))


class Gain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * gain

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * gain


gradsmith_inputs = {"Gain": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Gain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x, gain)
        return x * gain

    @staticmethod
    def backward(ctx, grad_output):
        x, gain = ctx.saved_tensors
        grad_x = grad_output * gain if ctx.needs_input_grad[0] else None
        grad_gain = (grad_output * x).sum(0) if ctx.needs_input_grad[1] else None
        return grad_x, grad_gain


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.ones(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Gain": example}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or forward.inherited or _fills_in(backward):
        return
    if not function.file.mentions("requires_grad", "Parameter("):
        return
    seen: set[str] = set()
    for node in forward.nodes:
        shown = _from_outside(forward, node)
        if (
            shown is None
            or shown in seen
            or shown in function.file.imports.names
            or f"{shown} =" not in function.file.text
        ):
            continue
        made = _made(function, shown)
        if made is not None and _needs_gradient(forward.file, made):
            seen.add(shown)
            yield function.at(
                node,
                f"{function.name}.forward uses '{shown}', which is not passed to apply. '{shown}' requires a gradient, and gets "
                "none: autograd knows only the arguments of apply.",
                advice=f"Make '{shown}' a parameter of forward, pass it in every call of `{function.name}.apply(...)`, and return its "
                "gradient from backward.",
                argument=shown,
            )


def _from_outside(forward: Method, node: ast.AST) -> str | None:
    """`gain`, or `self.gain` where self is the enclosing module's."""
    if isinstance(node, ast.Name) and forward.is_free(node) and node.id != "self":
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}" if forward.is_free(node.value) else None
    return None


def _made(function: FunctionModel, shown: str) -> ast.expr | None:
    """The one expression that the name is assigned in the enclosing scope."""
    file = function.file
    if "." not in function.qualname:
        return None if shown.startswith("self.") else file.value_of(shown)
    outer = file.block(function.qualname.partition(".")[0])
    values = [
        node.value
        for node in (nodes_under(outer) if outer is not None else ())
        if isinstance(node, ast.Assign) and any(ast.unparse(t) == shown for t in node.targets)
    ]
    if not values and not shown.startswith("self."):
        return file.value_of(shown)
    return values[0] if len(values) == 1 else None


def _needs_gradient(file: FileModel, made: ast.expr) -> bool:
    if not isinstance(made, ast.Call):
        return False
    if isinstance(made.func, ast.Attribute) and made.func.attr == "requires_grad_" and not made.args:
        return True
    flags = {k.arg: k.value.value for k in made.keywords if isinstance(k.value, ast.Constant)}
    dotted = file.dotted(made.func) or ""
    if dotted in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return flags.get("requires_grad", True) is True
    return dotted.startswith("torch.") and flags.get("requires_grad") is True


def _fills_in(backward: Method) -> bool:
    return any(n.attr in ("grad", "main_grad", "backward") for n in backward.of(ast.Attribute))
