"""A gradient keeps a dimension that its input was broadcast over.

What it finds
-------------
The gradient that backward returns is larger than its input: a dimension along which the input was broadcast has not been
summed. At run time the raw shapes are compared; in the source an added `bias` is looked for whose gradient is
grad_output as it came.

Why it matters
--------------
Autograd sums it for you, so the number is right. It costs memory and a second pass over a tensor that can be thousands
of times larger than the gradient, and code that calls backward itself (a test, a custom op, another Function) gets the
wrong shape.

Known problems
--------------
None known.

References
----------
https://github.com/pytorch/pytorch/issues/54346; measured on torch 2.13: autograd sums silently.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FunctionModel, Method

CODE = "GS304"
SEVERITY = "info"
OUTCOME = "unreduced"
BAD = """
import torch


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"AddBias": example}
"""
GOOD = BAD.replace("return grad_output, grad_output", "return grad_output, grad_output.sum(0)")


def _remedy(name: str, gradient: str) -> str:
    kept = f"{name}_shape" if name.isidentifier() else "shape"
    return f"Return `{gradient}.sum_to_size(ctx.{kept})` for '{name}', and write `ctx.{kept} = {name}.shape` in forward (or setup_context)."


def lint(function: FunctionModel) -> Iterator[Finding]:
    """Only biases: an input of that name which forward adds to something, and whose gradient is grad_output as it came."""
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or not function.has_gradient:
        return
    for param in function.inputs:
        returned = (
            function.gradients_of(param.index)
            if param.name in ("bias", "b") and _is_added(forward, param.name)
            else None
        )
        whole = [
            e for e in returned or () if any(s.owner == "grad_output" and s.same_object for s in backward.sources(e))
        ]
        if whole and len(whole) == len(returned or ()):
            yield function.at(
                whole[0],
                f"{function.name}.{backward.name} returns grad_output unchanged as the gradient of '{param.name}'. If forward "
                f"broadcasts '{param.name}', this gradient is larger than '{param.name}'. PyTorch sums it afterwards, so the caller gets the right gradient; "
                "code that calls backward itself gets the wrong shape.",
                argument=param.name,
                advice=_remedy(param.name, ast.unparse(whole[0])),
            )


def _is_added(forward: Method, name: str) -> bool:
    for node in forward.nodes:
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            sides = [node.value]
        if forward.op(node) == "linear" and isinstance(node, ast.Call):
            sides = node.args[2:3]
        if any(isinstance(s, ast.Name) and s.id == name for s in sides):
            return True
    return False


def probe(lab: Lab) -> Iterator[Finding]:
    from torch import Tensor

    from gradsmith.lab.measure.raw import raw_pairs

    for pair in raw_pairs(lab):
        given, returned = pair.given, pair.returned
        if not isinstance(given, Tensor) or not isinstance(returned, Tensor) or not pair.needed:
            continue
        if returned.shape != given.shape and returned.numel() > given.numel():
            yield lab.finding(
                f"{pair.function}.backward returns shape {tuple(returned.shape)} for '{pair.name}' of shape "
                f"{tuple(given.shape)}: the broadcast dimension is not summed. PyTorch sums it afterwards, over the dimensions that broadcasting adds.",
                function=pair.function,
                argument=pair.name,
                severity="warning",  # seen, not only suspected: backward did return another shape than its input has
                advice=_remedy(pair.name, "gradient"),
                evidence={"returned": list(returned.shape), "expected": list(given.shape)},
            )
