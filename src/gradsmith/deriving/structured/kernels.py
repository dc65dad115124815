"""Derivatives that PyTorch computes in a kernel of its own: convolutions, windows, and what has no formula in other operations."""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.node import Node, is_number
from gradsmith.deriving.structured.registry import Pairs, rule


@rule
def conv(y: Node, g: Any) -> Pairs:
    x, weight, bias, stride, padding, dilation, groups = y.args
    if isinstance(padding, str) or len(x.dims) != len(weight.dims):
        yield from vjp(y, g)
        return
    graph = y.graph
    options: tuple[tuple[str, Any], ...] = (
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
        ("groups", groups),
    )
    options = tuple((k, v) for k, v in options if not is_number(v, 0 if k == "padding" else 1))
    if x.needs_grad:
        made = graph.make("create", f"torch.nn.grad.{y.op}_input", (graph.shape_of(x), weight, g), options)
        made.dims = x.dims
        yield x, made
    if weight.needs_grad:
        made = graph.make("create", f"torch.nn.grad.{y.op}_weight", (x, graph.shape_of(weight), g), options)
        made.dims = weight.dims
        yield weight, made
    if isinstance(bias, Node):
        yield bias, g.sum((0, *range(2, len(g.dims))))


@rule
def unfold(y: Node, g: Any) -> Pairs:
    x, kernel, dilation, padding, stride = y.args
    size = (y.graph.size(x, -2), y.graph.size(x, -1))
    yield x, y.graph.make("fold", g, size, kernel, dilation, padding, stride)


@rule
def vjp(y: Node, g: Any) -> Pairs:
    """The operation's own vector-Jacobian product, asked of torch.func: the one call is done again, nothing else is."""
    wanted = [n for n in dict.fromkeys(y.operands) if n.needs_grad]
    made = y.graph.make("vjp", y, tuple(wanted), g)
    for i, operand in enumerate(wanted):
        part = y.graph.make("item", made, i)
        part.dims = operand.dims
        yield operand, part
