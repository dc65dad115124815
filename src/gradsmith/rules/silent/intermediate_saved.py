"""a saved intermediate makes the gradient of the gradient wrong

What it finds
-------------
`ctx.save_for_backward(t)` where `t` is a tensor computed in forward that is neither an input nor an output, in a
Function whose backward is not decorated with `@once_differentiable`. Masks, indices, noise and other values whose
derivative is zero are left alone, and so is what only sounds like one (`chunk_indices`). One report per Function.

Why it matters
--------------
Forward runs without a graph, so to backward such a tensor is a constant. The first gradient is right; differentiating
it again (gradient penalties, Hessian-vector products, MAML) silently misses every term that goes through the
intermediate. Measured on torch 2.13 at x = 2: for x**4 with x and x**2 saved the second derivative is 16 instead of
48; for x**3 with only x**2 saved, a penalty on the squared gradient adds 0 instead of 288. No error, no warning.

Known problems
--------------
Functions that are never differentiated twice are not harmed; say so with `@once_differentiable`. It raises for most
such uses, though not when grad_output itself needs no gradient.

References
----------
https://docs.pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html
https://github.com/pytorch/pytorch/issues/58509
https://github.com/pytorch/pytorch/pull/81340
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.knowledge import sounds_integer

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Save

CODE = "GS211"
SEVERITY = "warning"
EXPLAINS = ("wrong-second-order",)
FIXABLE = False
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, grad_output):
        (square,) = ctx.saved_tensors
        return grad_output * 3 * square


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    if function.once_differentiable or function.declaration is not None or not function.has_gradient:
        return
    found = [(save, e) for save in function.saves for e in save.exprs if _is_intermediate(function, save, e)]
    if not found:
        return
    save, first = found[0]
    names = list(dict.fromkeys(ast.unparse(e) for _, e in found))
    shown = ", ".join(repr(n) for n in names)
    plural = len(names) > 1
    yield function.at(
        first,
        f"{function.name}.{save.method.name} saves {shown}, {'which are' if plural else 'which is'} neither input nor "
        f"output: differentiating {function.name} twice silently treats {'them' if plural else 'it'} as constant.",
        advice=f"Save the inputs and recompute {shown} in backward, or decorate backward with "
        "`@torch.autograd.function.once_differentiable`.",
    )


def _is_intermediate(function: FunctionModel, save: Save, expression: ast.expr) -> bool:
    value = save.method.value(expression)
    if value.constant or value.never_tensor or value.elements in ("integer", "bool"):
        return False
    name = ast.unparse(expression)
    if sounds_integer(name) or _stands_for_constant(function, save, name):
        return False
    return function.role_of_saved(save, expression) in ("intermediate", "view")


LEVEL = "standard"


def probe(lab: Lab) -> Iterator[Finding]:
    """Saved tensors that are neither input nor output, where the second derivative is measured to be wrong."""
    from gradsmith.lab.second_order import second_order
    from gradsmith.lab.target import short_name

    if lab.gradient.wrong or lab.approximate:
        return
    for call in lab.observed.trace.forwards:
        known = [*call.args, *call.outputs]
        strange = [
            i
            for i, tensor in enumerate(call.saved)
            if tensor is not None and tensor.is_floating_point() and not any(tensor is k for k in known)
        ]
        if strange and second_order(lab).wrong:
            name = short_name(call.cls)
            where = ", ".join(f"number {i + 1}" for i in strange)
            yield lab.finding(
                f"{name}.forward saves tensors that are neither input nor output ({where} of {len(call.saved)}), and the "
                "second derivative is wrong.",
                function=name,
                severity="error" if lab.demands_second_order else None,
                advice="Save the inputs and recompute in backward, or decorate backward with "
                "`@torch.autograd.function.once_differentiable`.",
            )
            return


def _stands_for_constant(function: FunctionModel, save: Save, name: str) -> bool:
    """`cos = cos.reshape(...)` of an input `cos` whose gradient is always None: nothing is lost there."""
    param = save.method.param(name)
    return param is not None and param.role == "input" and function.gets_no_gradient(param.index)
