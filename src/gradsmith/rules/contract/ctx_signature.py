"""forward takes ctx although setup_context exists, or lacks it

What it finds
-------------
A Function with `setup_context` whose forward still takes `ctx` first; and a Function without `setup_context` whose forward
computes with its first parameter, which PyTorch fills with the context.

Why it matters
--------------
There are two styles, and PyTorch chooses by the presence of setup_context: with it, forward gets the inputs only. In the
wrong style every argument is shifted by one. The error ("missing a required argument: 'x'", "takes 1 positional argument
but 2 were given") does not mention setup_context.

Known problems
--------------
A missing ctx is reported only where the first parameter is used in arithmetic or handed to a torch operation.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: TypeError at the first apply, in both directions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS107"
SEVERITY = "error"
EXPLAINS = ("forward-raised", "backward-raised", "return-count", "backward-arity", "extra-none")
FIXABLE = True
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("forward(ctx, x)", "forward(x)")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, setup = function.forward, function.setup_context
    if function.kind != "function" or forward is None or forward.inherited:
        return
    if setup is not None and not setup.inherited and forward.ctx == "ctx":
        used = any(n.id == "ctx" for n in forward.of(ast.Name))
        yield function.at(
            forward.node.args.args[0] if forward.node.args.args else forward.node,
            f"{function.name}.forward takes ctx, but {function.name} has setup_context: PyTorch then passes the inputs "
            "only, and every argument is shifted by one.",
            advice="Leave ctx out of forward and do what needs it in setup_context.",
            edits=() if used else [_without_ctx(forward)],
        )
    elif setup is None and forward.binder == "static" and _is_operand(forward):
        first = forward.node.args.args[0]
        yield function.at(
            first,
            f"{function.name}.forward computes with its first parameter '{first.arg}', but PyTorch passes the context "
            f"there: {function.name} has no setup_context.",
            advice=f"Write `forward(ctx, {first.arg}, ...)`, or move what needs ctx into setup_context.",
            edits=[_with_ctx(forward, first)],
        )


def _without_ctx(forward: Method) -> Edit | None:
    names = forward.node.args.args
    if len(names) < 2 or names[0].arg != "ctx":
        return None
    begin, end = forward.file.place(names[0]), forward.file.place(names[1])
    return Edit(begin.line, begin.column, end.line, end.column, "")


def _with_ctx(forward: Method, first: ast.arg) -> Edit:
    place = forward.file.place(first)
    return Edit(place.line, place.column, place.line, place.column, "ctx, ")


def _is_operand(forward: Method) -> bool:
    """Nothing is asked of the first parameter that a context could give, and something is computed with it."""
    name = forward.ctx
    if name is None or not forward.node.args.args or "ctx" in name.lower() or "context" in name or name == "self":
        return False
    used = [n for n in forward.of(ast.Name) if n.id == name]
    parents = [forward.file.parents.get(n) for n in used]
    if any(isinstance(p, ast.Attribute) and p.attr in _OF_CTX for p in parents):
        return False
    if any(isinstance(p, ast.Attribute) and isinstance(p.ctx, ast.Store) for p in parents):
        return False
    return any(
        isinstance(p, ast.BinOp) or (isinstance(p, ast.Call) and forward.op(p) is not None and n in p.args)
        for n, p in zip(used, parents)
    )


_OF_CTX = frozenset(
    ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads",
     "needs_input_grad", "saved_tensors")
)  # fmt: skip
