"""gradcheck has nothing to check

What it finds
-------------
A gradcheck none of whose inputs requires a gradient, or all of whose inputs have no elements.

Why it matters
--------------
With an empty tensor gradcheck compares nothing and returns True. Measured on torch 2.13: a Function that is 1 % off passes on
`torch.randn(0)`. Without `requires_grad=True` it raises ValueError, also with `raise_exception=False`.

Known problems
--------------
Only tensors made in the same function are judged.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
Measured on torch 2.13: see above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.gradchecks import Made, gradchecks, made

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS906"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = False
TRIGGERS = ("gradcheck",)
BAD = """
import torch
from torch.autograd import gradcheck


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


def test_cube():
    x = torch.randn(4, 3, dtype=torch.float64)
    assert gradcheck(Cube.apply, (x,))


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    "torch.randn(4, 3, dtype=torch.float64)\n",
    "torch.randn(4, 3, dtype=torch.float64, requires_grad=True)\n",
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    for check in gradchecks(file):
        tensors = [made(check, node) for node in check.inputs or ()]
        known = [t for t in tensors if t is not None]
        if not known or len(known) != len(tensors):
            continue
        later = any(n.attr in ("requires_grad", "requires_grad_") for n in check.method.of(ast.Attribute))
        if not later and not any(t.requires_grad for t in known):
            what, advice = (
                "raises ValueError, because none of its inputs requires a gradient",
                "Make its inputs with `requires_grad=True`.",
            )
        elif all(_is_empty(t) for t in known):
            what, advice = (
                "compares nothing and passes, because its inputs have no elements",
                "Use tensors with a few elements.",
            )
        else:
            continue
        yield file.at(check.node, f"{check.method.name}: {check.name} {what}.", advice=advice)


def _is_empty(tensor: Made) -> bool:
    return any(isinstance(a, ast.Constant) and a.value == 0 for a in tensor.factory.args)
