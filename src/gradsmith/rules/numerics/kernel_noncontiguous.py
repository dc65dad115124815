"""a gradient goes to a kernel without its strides

What it finds
-------------
A grad_output passed in backward to a Triton or Numba launch (`kernel[grid](grad_output, ...)`), or whose `data_ptr()`
is taken, where backward neither makes it contiguous nor looks at its strides.

Why it matters
--------------
Autograd passes gradients with any strides: `y.sum()` sends one element expanded with stride 0, `torch.cat` sends
slices of a larger tensor. A kernel that counts on one row after another then reads wrong elements or memory that is not
its own. `gradcheck` cannot see this: it sends contiguous gradients only.

Known problems
--------------
A function of a compiled extension may call `contiguous()` itself, so what is passed to `_C.something(...)` is reported as
information. Under a decorator this tool does not know nothing is reported.

References
----------
https://github.com/pytorch/pytorch/issues/194719
https://github.com/Dao-AILab/flash-attention/issues/355
https://github.com/fla-org/flash-linear-attention/pull/871
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source import roles
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.findings import Severity
    from gradsmith.source import FunctionModel, Method
    from gradsmith.source.calls import CallSite

CODE = "GS307"
SEVERITY = "warning"
EXPLAINS = ("layout-dependent",)
FIXABLE = True
BAD = """
import ctypes

import torch


class CopyFromC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        grad_x = torch.empty(grad_output.shape, dtype=grad_output.dtype, device=grad_output.device)
        ctypes.memmove(grad_x.data_ptr(), grad_output.data_ptr(), grad_x.numel() * grad_x.element_size())
        return grad_x


gradsmith_inputs = {"CopyFromC": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    "        grad_x = torch.empty(", "        grad_output = grad_output.contiguous()\n        grad_x = torch.empty("
)
_KNOWN = ("staticmethod", "classmethod", "once_differentiable", "custom_bwd")


def lint(function: FunctionModel) -> Iterator[Finding]:
    from gradsmith.source.edits import insert_before

    backward = function.backward
    if backward is None or not function.has_gradient:
        return
    if any(d.rpartition(".")[2] not in _KNOWN for d in backward.decorators):
        return
    if roles.all_outputs_scalar(function):
        return  # the gradient of one number has no strides to speak of
    reported: set[str] = set()
    for call in backward.calls:
        for name in sorted(_as_it_came(backward, call)):
            if name in reported or _layout_considered(backward, name):
                continue
            reported.add(name)
            where = "a kernel" if call.is_kernel else "compiled code"
            severity: Severity | None = "info" if _is_foreign(call) else None
            param = backward.param(name)
            first = backward.node.body[0]
            plain = param is not None and param.kind == "positional" and function.materializes
            yield function.at(
                call.node,
                f"{function.name}.{backward.name} passes '{name}' to {where}, but not the strides of '{name}': a transposed or "
                "expanded gradient is read in the wrong order.",
                advice=f"Write `{name} = {name}.contiguous()` first, or pass `{name}.stride()` to the kernel.",
                argument=name,
                severity=severity,
                edits=[insert_before(backward.file, _after_docstring(backward, first), f"{name} = {name}.contiguous()")]
                if plain
                else [],
            )


def _as_it_came(method: Method, call: CallSite) -> set[str]:
    """Names of grad_outputs that this call hands over with the strides they came with."""
    if call.op == "data_ptr" and isinstance(call.node.func, ast.Attribute):
        around = method.file.parents.get(call.node)
        # An address that is stored or compared, not handed to C, does no harm.
        given = [call.node.func.value] if isinstance(around, ast.Call) and call.node in around.args else []
    elif call.is_kernel or _is_foreign(call):
        given = [*call.node.args, *(k.value for k in call.node.keywords)]
    else:
        return set()
    # `g.view(-1, d)` keeps the rows where they were; `g.contiguous()` and `g.reshape(...)` may have moved them.
    return {s.name for e in given for s in method.sources(e) if s.owner == "grad_output" and s.certain}


def _is_foreign(call: CallSite) -> bool:
    """An extension of the project. Operators registered with torch (`torch.ops`) see strides as any operator does."""
    return call.is_extension and not (call.dotted or "").startswith("torch.ops.")


def _layout_considered(method: Method, name: str) -> bool:
    """Its strides, its contiguity or a contiguous version of it are mentioned anywhere in backward."""
    for node in method.nodes:
        if isinstance(node, ast.Call) and "contig" in ast.unparse(node.func).lower():
            return True
        layout = isinstance(node, ast.Attribute) and node.attr in know.LAYOUT
        if layout and any(isinstance(n, ast.Name) and n.id == name for n in nodes_under(node)):
            return True
    return False


def _after_docstring(method: Method, first: ast.stmt) -> ast.stmt:
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return method.node.body[1] if is_text and len(method.node.body) > 1 else first
