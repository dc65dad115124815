"""a composition that autograd differentiates as well, and saves no more for it

What it finds
-------------
A Function whose forward is plain elementwise arithmetic of differentiable torch operations, whose backward is exactly its
derivative, and which saves at least as many tensors as autograd would.

Why it matters
--------------
The hand-written derivative gives nothing, and has to be kept right whenever forward changes. A call costs three microseconds
more (4.9 us against 1.8 us for one operation on torch 2.13).

Known problems
--------------
Conservative: a Function that saves fewer tensors than autograd would is left alone, for it may be there to save memory, and so
is one with a declared surrogate.

References
----------
Measured on torch 2.13: see above, and docs/when_not_to.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.knowledge import SAVES_NOTHING
from gradsmith.source.scalar import is_exact

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS802"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class Wave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * torch.sin(x) + 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (3 * torch.cos(x) + 2)


gradsmith_inputs = {"Wave": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Bump(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(-x * x) * torch.sin(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(-x * x) * (torch.cos(x) - 2 * x * torch.sin(x))


gradsmith_inputs = {"Bump": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward = function.forward
    if function.kind != "function" or forward is None or forward.inherited or function.declaration is not None:
        return
    if not function.has_gradient or function.ctx_escapes or len(function.saves) > 1 or function.ctx_writes:
        return
    saved = len(function.saves[0].exprs) if function.saves else 0
    needed = _autograd_saves(forward)
    if needed is not None and saved >= needed and is_exact(function):
        yield function.at(
            function.node,
            f"{function.name} is not needed: autograd through forward gives the same gradient, and {_kept(saved, needed)}.",
            advice=f"Make forward a plain function without ctx, call it instead of {function.name}.apply, and delete the class.",
        )


def _kept(ours: int, theirs: int) -> str:
    tensors = f"{theirs} tensor{'s' if theirs != 1 else ''}" if theirs else "no tensor"
    return f"both save {tensors}" if ours == theirs else f"saves {tensors} instead of {ours}"


def _autograd_saves(forward: Method) -> int | None:
    """How many different tensors autograd would keep for forward; None where that is not plain to see."""
    if len(forward.returns) != 1 or forward.returns[0].value is None:
        return None
    kept: set[str] = set()
    waiting: list[ast.expr] = [forward.returns[0].value]
    operations = 0
    while waiting:
        node = forward.resolve(waiting.pop())
        if isinstance(node, (ast.Constant, ast.Name)):
            continue
        if isinstance(node, ast.UnaryOp):
            waiting.append(node.operand)
            continue
        operations += 1
        if isinstance(node, ast.BinOp):
            sides = [node.left, node.right]
            tensors = [s for s in sides if not isinstance(s, ast.Constant)]
            waiting += tensors
            if isinstance(node.op, (ast.Add, ast.Sub)):
                continue
            if isinstance(node.op, (ast.Mult, ast.Div)) and len(tensors) == 1 and tensors[0] is node.left:
                continue  # times a number
            if isinstance(node.op, ast.Mult) and len(tensors) == 1:
                continue
            kept |= {ast.unparse(forward.resolve(t)) for t in tensors}
        elif isinstance(node, ast.Call) and (op := forward.op(node)) is not None:
            torch_function = (forward.dotted(node.func) or "").startswith("torch.")
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) and not torch_function else []
            operands = [o for o in (*receiver, *node.args) if not isinstance(o, ast.Constant)]
            waiting += operands
            if op not in SAVES_NOTHING:
                # The input or the result, one tensor either way; a product keeps both of its factors.
                kept |= {ast.unparse(forward.resolve(o)) for o in operands}
        else:
            return None
    return len(kept) if operations else None
