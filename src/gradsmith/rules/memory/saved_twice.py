"""the same tensor is kept for backward twice

What it finds
-------------
A tensor that stands twice in one `save_for_backward(...)`, or is saved there and kept as an attribute of ctx as well.

Why it matters
--------------
Every entry of `save_for_backward` goes through `saved_tensors_hooks` on its own: offloading and quantising copy the tensor
once per entry. Measured on torch 2.13: a tensor of 4,000 bytes saved twice packs 8,000 bytes. The attribute beside a saved
tensor keeps it alive after backward has freed the saved one.

Known problems
--------------
Without hooks the second entry costs only a reference. A view of a saved tensor is not counted as the same one.

References
----------
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks
Measured on torch 2.13: pack is called once per entry, also for the same tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS403"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        left, right = ctx.saved_tensors
        return grad_output * (left + right)


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


def lint(function: FunctionModel) -> Iterator[Finding]:
    for save in function.saves:
        if save.method.inherited:
            continue
        seen: set[tuple[object, ...]] = set()
        told: set[str] = set()
        for expression in save.exprs:
            if not isinstance(expression, ast.Name):
                continue
            key = (expression.id, *map(id, save.method.definitions(expression)))
            if key in seen and len(key) > 1 and expression.id not in told:
                told.add(expression.id)
                yield function.at(
                    expression,
                    f"{function.name}.{save.method.name} saves '{expression.id}' twice: hooks that offload or compress saved "
                    "tensors copy it twice.",
                    advice="Save it once and use the one name in backward.",
                    argument=expression.id,
                )
            seen.add(key)
        for write in function.ctx_writes:
            value = write.value
            if write.method is not save.method or not isinstance(value, ast.Name):
                continue
            if (value.id, *map(id, write.method.definitions(value))) in seen and write.method.definitions(value):
                yield function.at(
                    write.node,
                    f"{function.name}.{write.method.name} keeps '{value.id}' as ctx.{write.attr} and saves it too: the attribute "
                    "holds the memory after backward has freed the saved tensor.",
                    advice=f"Drop `ctx.{write.attr}` and use the tensor from ctx.saved_tensors.",
                    argument=value.id,
                )
