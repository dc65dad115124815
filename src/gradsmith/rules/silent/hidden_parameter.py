"""A parameter inside a module argument or a closure gets no gradient.

What it finds
-------------
forward uses parameters that are not among its tensor arguments: those of an nn.Module passed as an argument, or tensors
reached through a global or a closure. Autograd knows only the tensors passed to `apply`, so these get no gradient, unless
backward fills them in itself.

Why it matters
--------------
The wrapped layer trains everything but its own weights. gradcheck looks at the tensor arguments only and passes it.

Known problems
--------------
A backward that calls `torch.autograd.backward` inside (recomputation) does fill them in and is not reported.

References
----------
https://github.com/pytorch/pytorch/issues/3394; measured on torch 2.13: `layer.weight.grad` stays None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method, Param

CODE = "GS209"
SEVERITY = "error"
DEMONSTRATION = "hidden"
BAD = """
import torch
from torch import nn


class Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.save_for_backward(x)
        ctx.layer = layer
        return layer(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output @ ctx.layer.weight, None


gradsmith_inputs = {
    "Apply": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), nn.Linear(3, 5, dtype=torch.float64))
}
"""
GOOD = """
import torch


class Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t() @ x if ctx.needs_input_grad[1] else None
        grad_bias = grad_output.sum(0) if ctx.needs_input_grad[2] else None
        return grad_x, grad_weight, grad_bias


def example():
    layer = torch.nn.Linear(3, 5, dtype=torch.float64)
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True), layer.weight, layer.bias


gradsmith_inputs = {"Apply": example}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or not function.has_gradient or forward.vararg is not None:
        return
    if any(n.attr in _FILLS_IN for n in backward.of(ast.Attribute)) or function.ctx_escapes:
        return
    for param in forward.positional:
        call = _called(forward, param)
        if call is None or not function.gets_no_gradient(param.index):
            continue
        if param.declared.kind == "module" or _has_parameters(function, param):
            yield function.at(
                call,
                f"{function.name}.forward computes with the module '{param.name}', whose parameters get no gradient: they are not "
                "among the tensors passed to apply.",
                advice=f"Pass the parameters of '{param.name}' as arguments of forward and return their gradients.",
                argument=param.name,
                severity="warning",
            )


_FILLS_IN = frozenset(("backward", "grad", "main_grad", "parameters", "enable_grad", "vjp"))


def _called(forward: Method, param: Param) -> ast.Call | None:
    """`layer(x)`"""
    for call in forward.calls:
        if isinstance(call.node.func, ast.Name) and forward.param_of(call.node.func) is param:
            return call.node
    return None


def _has_parameters(function: FunctionModel, param: Param) -> bool:
    """`layer.weight` or `ctx.layer.weight` is read somewhere."""
    kept = {w.attr for w in function.ctx_writes if isinstance(w.value, ast.Name) and w.value.id == param.name}
    methods = [m for m in (function.forward, function.backward) if m is not None]
    owners = {param.name, *(f"{m.ctx}.{attr}" for m in methods for attr in kept)}
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("weight", "bias", "parameters") and ast.unparse(n.value) in owners
        for m in methods
        for n in m.nodes
    )


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.subject.hidden import untrained

    for name in untrained(lab):
        yield lab.finding(
            f"{lab.target.name}: the output depends on '{name}', which requires grad but gets none: it is not among the "
            "tensors passed to apply.",
            argument=name,
            advice="Pass the parameter itself as an argument of forward and return its gradient.",
        )
