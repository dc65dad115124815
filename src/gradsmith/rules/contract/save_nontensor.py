"""save_for_backward is given something that is not a tensor

What it finds
-------------
An argument of `ctx.save_for_backward` that is certainly neither a tensor nor None: a literal, a shape, a dtype, a list
or tuple, a parameter annotated (or defaulted) as a number.

Why it matters
--------------
PyTorch raises as soon as an input requires grad: "save_for_backward can only save variables, but argument 1 is of
type torch.Size". Under no_grad the same call passes, so inference tests do not find it.

Known problems
--------------
Values whose type the source does not show are left alone. Code behind an `isinstance` test is trusted.

References
----------
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.function.FunctionCtx.save_for_backward
https://github.com/pytorch/tutorials/issues/2797
https://github.com/pytorch/pytorch/issues/37751
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Save

CODE = "GS105"
SEVERITY = "error"
EXPLAINS = ("forward-raised",)
FIXABLE = False
BAD = """
import torch


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.shape)
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        (shape,) = ctx.saved_tensors
        return grad_output.expand(shape)


gradsmith_inputs = {"Total": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.shape)


gradsmith_inputs = {"Total": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
_WHAT = {
    "int": "an int", "float": "a float", "number": "a number", "bool": "a bool", "str": "a string", "shape": "a shape",
    "tuple": "a tuple", "list": "a list", "dict": "a dict", "dtype": "a dtype", "device": "a device",
    "module": "a module", "callable": "a function", "ndarray": "a NumPy array",
}  # fmt: skip


def lint(function: FunctionModel) -> Iterator[Finding]:
    for save in function.saves:
        for expression in save.exprs:
            value = save.method.value(expression)
            if _is_builtin(function, save, expression):
                yield function.at(
                    expression,
                    f"{function.name}.{save.method.name} passes '{ast.unparse(expression)}' to save_for_backward, which is Python's "
                    f"own function here: nothing in {save.method.name} has that name.",
                    advice="Save the tensor that was meant: " + ", ".join(f"`{p.name}`" for p in function.inputs) + ".",
                )
                continue
            if not value.never_tensor or _is_tested(save, expression):
                continue
            name = ast.unparse(expression)
            holds = value.kind in ("tuple", "list")
            plain = f"Write `ctx.{_attribute(expression)} = {name}`; only tensors go through save_for_backward."
            yield function.at(
                expression,
                f"{function.name}.{save.method.name} passes {name!r} to save_for_backward, but it is "
                f"{_WHAT[value.kind]}: PyTorch raises as soon as an input requires grad.",
                advice=f"Write `ctx.save_for_backward(*{name})`." if holds else plain,
                argument=name if save.method.param(name) else None,
            )


def _is_builtin(function: FunctionModel, save: Save, expression: ast.expr) -> bool:
    """`ctx.save_for_backward(input)` where the parameter is called `x`."""
    if not (isinstance(expression, ast.Name) and save.method.is_free(expression)):
        return False
    file, name = save.method.file, expression.id
    inside = "." in function.qualname  # of a function, whose variables may have any name
    return not inside and hasattr(builtins, name) and name not in file.imports.names and name not in file.tops


def _attribute(expression: ast.expr) -> str:
    if isinstance(expression, ast.Name):
        return expression.id
    return expression.attr if isinstance(expression, ast.Attribute) else "value"


def _is_tested(save: Save, expression: ast.expr) -> bool:
    name = ast.unparse(expression)
    return any(name in ast.unparse(guard.test) for guard in save.method.guards(save.node))
