"""a custom Function around a single built-in operation

What it finds
-------------
A Function of elementwise arithmetic whose forward is one of PyTorch's own operations (exp, relu, sigmoid, silu, a product ...),
also where it is written out (`x * torch.sigmoid(x)` is `F.silu`), and whose backward is exactly its derivative.

Why it matters
--------------
The built-in does the same, in C++, with less memory, under compile, vmap and torch.func, and it is verified by others.
Measured on torch 2.13, per call: built-in 1.8 us, Function 4.9 us, Function with setup_context 15.6 us.

Known problems
--------------
Formulas are compared as numbers at a few points, in plain Python; only Functions of one element at a time are understood. An
example that teaches how to write a Function is one of these, and right: this is information.

References
----------
Measured on torch 2.13: see above, and docs/when_not_to.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.scalar import POINTS, UNARY, at, is_exact
from gradsmith.source.torch_ops import IN_TORCH

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS801"
SEVERITY = "info"
EXPLAINS = ("autograd-suffices",)
FIXABLE = False
BAD = """
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
import torch.nn.functional as F


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.silu(x) / (1 + x * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        slope = s + x * s * (1 - s)
        return grad_output * (slope * (1 + x * x) - x * s * 2 * x) / (1 + x * x) ** 2


gradsmith_inputs = {"Half": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    name = builtin(function)
    if name is not None and is_exact(function):
        yield function.at(
            function.node,
            f"{function.name} computes what {name} computes, with the same gradient.",
            advice=f"Call {name} instead of {function.name}.apply: it is faster, and you have no backward to maintain.",
        )


def builtin(function: FunctionModel) -> str | None:
    """The operation of PyTorch that forward is, if it is one."""
    forward = function.forward
    if function.kind != "function" or forward is None or function.declaration is not None or not function.has_gradient:
        return None
    if function.ctx_escapes or len(function.inputs) != 1 or forward.inherited:
        return None
    x = function.inputs[0].name
    here = [(p, value) for p in POINTS if (value := at(function, {x: p})) is not None]
    if len(here) < 3:
        return None
    for op, compute in UNARY.items():
        try:
            if all(abs(compute(p) - value) < 1e-12 * (1 + abs(value)) for p, value in here):
                return f"torch.{op}" if op in IN_TORCH else f"torch.nn.functional.{op}"
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
    return None
