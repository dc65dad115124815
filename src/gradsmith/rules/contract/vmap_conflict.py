"""generate_vmap_rule is set, but the class does not allow it

What it finds
-------------
`generate_vmap_rule = True` in a Function that defines `vmap` as well, or that has no `setup_context`.

Why it matters
--------------
PyTorch cannot know which rule is meant and raises under vmap: "it has both generate_vmap_rule=True and an overridden vmap
staticmethod". Without setup_context it raises too: functorch cannot run a forward that takes ctx.

Known problems
--------------
Nothing happens until somebody calls vmap; the setting itself is accepted.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.func.html
Measured on torch 2.13: RuntimeError under torch.vmap in both cases.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.edits import delete_lines

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel

CODE = "GS112"
SEVERITY = "error"
FIXABLE = True
BAD = """
import torch


class Double(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return Double.apply(x), in_dims[0]


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("    generate_vmap_rule = True\n\n", "")


def lint(function: FunctionModel) -> Iterator[Finding]:
    setting = _generate(function)
    if setting is None or function.forward is None or function.backward is None:
        return
    if function.vmap is not None:
        why, advice = (
            "defines vmap too",
            (
                "Delete one of the two: `generate_vmap_rule = True` to use your vmap method, or the method to let PyTorch generate the rule."
            ),
        )
    elif function.setup_context is None:
        why, advice = "has no setup_context", "Move what forward does with ctx into setup_context(ctx, inputs, output)."
    else:
        return
    yield function.at(
        setting,
        f"{function.name} sets generate_vmap_rule = True but {why}: PyTorch raises as soon as vmap is used.",
        advice=advice,
        edits=[delete_lines(function.file, setting)] if function.vmap is not None else (),
        unsafe="under vmap your method is used from then on, and it may be wrong; `gradsmith check` compares it with a loop",
    )


def _generate(function: FunctionModel) -> ast.Assign | ast.AnnAssign | None:
    for statement in function.node.body if function.kind == "function" else ():
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        value = statement.value
        if "generate_vmap_rule" in names and isinstance(value, ast.Constant) and value.value is True:
            return statement
    return None
