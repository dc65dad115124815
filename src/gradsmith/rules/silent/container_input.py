"""forward takes its tensors in a list or a dict

What it finds
-------------
An argument of forward that is annotated as a list, tuple or dict of tensors, for which backward returns a gradient, or
which is the only argument that brings tensors at all; and a list or tuple returned by backward as one gradient.

Why it matters
--------------
PyTorch looks for tensors among the arguments of `apply`, not inside them. The tensors in a list are constants to it: they get
no gradient, and if there are no others, backward is never called. A list returned as a gradient raises.

Known problems
--------------
A list of constants (indices, masks) beside other tensors is fine, with None as its gradient, and is not reported. Custom ops
take lists, and are not reported.

References
----------
https://github.com/pytorch/pytorch/issues/55509
https://github.com/pytorch/pytorch/issues/89801
Measured on torch 2.13: `Fn.apply([x, y]).requires_grad` is False; with another tensor beside the list, a gradient for the list
raises "returned a gradient different than None at position 2".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Param

CODE = "GS207"
SEVERITY = "error"
EXPLAINS = ("backward-raised", "none-for-tensor", "wrong-gradient", "grad-for-nontensor", "hidden-parameter")
BAD = """
import torch


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs: list[torch.Tensor]):
        ctx.count = len(xs)
        return torch.stack(xs).sum(0)

    @staticmethod
    def backward(ctx, grad_output):
        return [grad_output] * ctx.count


gradsmith_inputs = {
    "Total": lambda: ([torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)],)
}
"""
GOOD = """
import torch


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *xs):
        ctx.count = len(xs)
        return torch.stack(xs).sum(0)

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output,) * ctx.count


gradsmith_inputs = {
    "Total": lambda: tuple(torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    forward, backward = function.forward, function.backward
    if function.kind != "function" or forward is None or backward is None or not function.has_gradient:
        return
    if forward.inherited or forward.vararg is not None:
        return
    for param in forward.positional:
        holds = param.declared.holds_tensors and param.declared.kind in ("list", "tuple", "dict")
        gradients = function.gradients_of(param.index)
        if holds and (_is_alone(function, param) or _is_given(gradients)):
            yield function.at(
                param.node,
                f"{function.name}.forward takes tensors inside '{param.name}': PyTorch does not see tensors inside a "
                f"{param.declared.kind}, so they get no gradient.",
                advice=f"Write `*{param.name}` in forward, return one gradient for each from backward, and call "
                f"`{function.name}.apply(*{param.name})`.",
                argument=param.name,
            )
            continue
        for gradient in gradients or () if not holds else ():
            if isinstance(backward.resolve(gradient), (ast.List, ast.ListComp)):
                yield function.at(
                    gradient,
                    f"{function.name}.{backward.name} returns a list as the gradient of '{param.name}': PyTorch wants a tensor "
                    "or None.",
                    advice=f"Take the tensors of '{param.name}' as separate arguments and return one gradient for each.",
                    argument=param.name,
                )


def _is_given(gradients: list[ast.expr] | None) -> bool:
    return gradients is not None and any(not (isinstance(g, ast.Constant) and g.value is None) for g in gradients)


def _is_alone(function: FunctionModel, param: Param) -> bool:
    """No other argument could be a tensor."""
    return all(p is param or p.declared.never_tensor for p in function.inputs)
