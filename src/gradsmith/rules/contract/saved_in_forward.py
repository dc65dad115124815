"""ctx.saved_tensors is read before anything is saved

What it finds
-------------
forward or setup_context reads `ctx.saved_tensors`.

Why it matters
--------------
save_for_backward only notes what is to be saved; PyTorch stores it after forward has returned. Until then
`ctx.saved_tensors` is empty, so unpacking it raises "not enough values to unpack (expected 1, got 0)", and a loop over it
does nothing.

Known problems
--------------
None known.

References
----------
Measured on torch 2.13: `len(ctx.saved_tensors)` is 0 in forward, right after save_for_backward(x).
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS106"
SEVERITY = "error"
EXPLAINS = ("forward-raised", "unpack-count")
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        (kept,) = ctx.saved_tensors
        return kept * kept

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("        (kept,) = ctx.saved_tensors\n        return kept * kept", "        return x * x")


def lint(function: FunctionModel) -> Iterator[Finding]:
    for method in function.before:
        for unpack in method.context.unpacks:
            read = unpack.node
            if isinstance(read, ast.Attribute) and read.attr == "saved_for_forward":
                continue
            if method.in_nested_function(read):
                continue
            yield function.at(
                read,
                f"{function.name}.{method.name} reads `{ast.unparse(read)}`, which is empty until forward has returned. "
                "Unpacking it raises ValueError.",
                advice="Use the tensors themselves here; ctx.saved_tensors is for backward.",
            )
