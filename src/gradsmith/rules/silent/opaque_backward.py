"""backward leaves autograd without saying so

What it finds
-------------
A backward without `@once_differentiable` that detaches its grad_output or goes through NumPy. Kernels and extensions are
remarked upon only.

Why it matters
--------------
Somebody who differentiates twice (a gradient penalty, a Hessian product, MAML) gets a number without the part that autograd could
not see, and no error. With the decorator PyTorch raises instead.

Known problems
--------------
A backward that reruns forward under enable_grad detaches on purpose, and is not reported. once_differentiable raises only
if the gradient that reaches it requires grad.

References
----------
https://github.com/pytorch/pytorch/issues/18619
https://github.com/NVlabs/tiny-cuda-nn/issues/58
Measured on torch 2.13: d/dx of x * 3x^2, with 3x^2 computed through NumPy in backward, is [3, 12, 27] instead of [9, 36, 81].
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.behind import made_of
from gradsmith.source.edits import insert_before

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS212"
SEVERITY = "warning"
EXPLAINS = ("wrong-second-order",)
FIXABLE = True
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = 3 * x.detach().numpy() ** 2
        return grad_output * torch.from_numpy(slope)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch.autograd.function import once_differentiable


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = 3 * x.detach().numpy() ** 2
        return grad_output * torch.from_numpy(slope)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or function.kind != "function" or function.once_differentiable or not function.has_gradient:
        return
    if any(n.attr in _RECOMPUTES for n in backward.of(ast.Attribute)):
        return
    for node, how, certain in _ways_out(function, backward):
        yield function.at(
            node,
            f"{function.name}.{backward.name} {how}, which autograd does not see: differentiating {function.name} twice gives a "
            "wrong number instead of an error.",
            advice="Decorate backward with `@torch.autograd.function.once_differentiable`, below @staticmethod.",
            edits=[_decorated(function, backward)] if certain else (),
            unsafe="code that differentiates twice may raise from then on",
            severity=None if certain else "info",
        )
        return


_RECOMPUTES = frozenset(("enable_grad", "set_grad_enabled", "once_differentiable", "requires_grad_"))


def _ways_out(function: FunctionModel, backward: Method) -> list[tuple[ast.AST, str, bool]]:
    """Places where values leave autograd, the surest first."""
    found: list[tuple[ast.AST, str, bool]] = []
    for call in backward.calls:
        if backward.in_nested_function(call.node):
            continue
        if call.op == "numpy" and isinstance(call.node.func, ast.Attribute):
            if _has_no_gradient(function, call.node.func.value):
                continue
            found.append((call.node, "goes through NumPy", call.node in _returned(backward)))
        elif call.op == "detach" and isinstance(call.node.func, ast.Attribute):
            owned = any(s.owner == "grad_output" for s in backward.sources(call.node.func.value))
            if owned and call.node in _returned(backward):
                found.append((call.node, "detaches its grad_output", True))
        elif call.is_kernel or call.is_extension or call.op == "data_ptr":
            found.append((call.node, f"calls {ast.unparse(call.node.func)}", False))
    return sorted(found, key=lambda way: not way[2])


def _has_no_gradient(function: FunctionModel, value: ast.expr) -> bool:
    """A saved tensor made of inputs that get no gradient alone, such as strides in a tensor: nothing is lost with it."""
    for unpack, save in ((u, s) for u in function.unpacks for s in function.saves):
        names = [t.id if isinstance(t, ast.Name) else "" for t in unpack.targets or ()]
        if unpack.starred or save.starred or not isinstance(value, ast.Name) or len(names) != len(save.exprs):
            continue
        if value.id in names:
            made = made_of(save.method, [save.exprs[names.index(value.id)]])
            read = {n.id for n in made if isinstance(n, ast.Name)}
            inputs = [p.index for p in function.inputs if p.name in read]
            return bool(inputs) and all(function.gets_no_gradient(i) for i in inputs)
    return False


def _returned(method: Method) -> set[ast.AST]:
    """Every expression that what backward returns is made of."""
    return set(made_of(method, [found.node.value for found in method.returns]))


def _decorated(function: FunctionModel, backward: Method) -> Edit | None:
    if backward.inherited or backward.file.imports.names.get("torch") != "torch" or backward.node.decorator_list == []:
        return None
    line = backward.node.lineno
    place = ast.copy_location(ast.Pass(), backward.node)
    place.lineno = line
    return insert_before(backward.file, place, "@torch.autograd.function.once_differentiable")
