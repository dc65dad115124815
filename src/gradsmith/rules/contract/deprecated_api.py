"""deprecated names of the autograd API

What it finds
-------------
`@torch.cuda.amp.custom_fwd` and `custom_bwd`, `ctx.saved_variables`, `ctx.mark_shared_storage`.

Why it matters
--------------
They warn on every use and will go. The CUDA spelling of custom_fwd also ties the Function to one kind of device: under
autocast on another it does nothing.

Known problems
--------------
Files that try `torch.amp` first and fall back to `torch.cuda.amp` for old releases are left alone.

References
----------
https://docs.pytorch.org/docs/stable/amp.html
Measured on torch 2.13: FutureWarning for torch.cuda.amp.custom_fwd, DeprecationWarning for saved_variables, FutureWarning for
mark_shared_storage.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.edits import delete_lines, replace

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS117"
SEVERITY = "warning"
FIXABLE = True
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_variables
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("saved_variables", "saved_tensors")


def lint(function: FunctionModel) -> Iterator[Finding]:
    for method in list(function.methods.values()):
        yield from _decorators(function, method)
        for unpack in method.context.unpacks:
            read = unpack.node
            if isinstance(read, ast.Attribute) and read.attr == "saved_variables":
                yield function.at(
                    read,
                    f"{function.name}.{method.name} reads ctx.saved_variables, the deprecated name of ctx.saved_tensors.",
                    advice="Write ctx.saved_tensors.",
                    edits=[replace(method.file, read, f"{ast.unparse(read.value)}.saved_tensors")],
                )
        for mark in method.context.marks:
            if mark.name == "mark_shared_storage":
                statement = method.statement(mark.node)
                alone = isinstance(statement, ast.Expr) and statement.value is mark.node
                yield function.at(
                    mark.node,
                    f"{function.name}.{method.name} calls ctx.mark_shared_storage, which is deprecated and does nothing: "
                    "PyTorch sees shared memory by itself.",
                    advice="Delete it.",
                    edits=[delete_lines(method.file, statement) if alone else None],
                )


def _decorators(function: FunctionModel, method: Method) -> Iterator[Finding]:
    if method.inherited or "torch.amp import" in method.file.text or "torch.amp.custom" in method.file.text:
        return
    for decorator in method.node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        dotted = method.dotted(call) or ""
        name = dotted.rpartition(".")[2]
        if not dotted.startswith("torch.cuda.amp.") or name not in ("custom_fwd", "custom_bwd"):
            continue
        yield function.at(
            decorator,
            f"{function.name}.{method.name} is decorated with torch.cuda.amp.{name}, which is deprecated.",
            advice=f'Write `@torch.amp.{name}(device_type="cuda")`.',
            edits=[_modern(function, method, decorator, name)],
        )


def _modern(function: FunctionModel, method: Method, decorator: ast.expr, name: str) -> Edit | None:
    if method.file.imports.names.get("torch") != "torch":
        return None
    given = ""
    if isinstance(decorator, ast.Call):
        parts = [method.file.source_of(p) for p in (*decorator.args, *(k for k in decorator.keywords))]
        if decorator.args:
            return None
        given = "".join(f", {part}" for part in parts)
    return replace(method.file, decorator, f'torch.amp.{name}(device_type="cuda"{given})')
