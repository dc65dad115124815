"""The gradient of what chunk, split, unbind, sort and their like were called on, from the gradients of the parts."""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.node import Node
from gradsmith.deriving.structured.kernels import vjp
from gradsmith.deriving.structured.registry import Pairs


def of_parts(node: Node, parts: dict[int, Any]) -> Pairs:
    """The gradient of what chunk, split, unbind, sort and their like were called on."""
    graph = node.graph
    operation = graph.operations[node.op]
    x = node.args[0]
    if operation.structured == "chosen":
        dim, keep = operation.argument(node.args, "dim"), True
        if "keepdim" in operation.params:
            keep = operation.argument(node.args, "keepdim")
        indices, g = graph.make("item", node, 1), parts[0]
        if not keep and len(x.dims) > 0:
            indices, g = indices.unsqueeze(dim), g.unsqueeze(dim)
        yield x, graph.zeros_of(g, x).scatter_add(dim, indices, g)
        return
    some = next(iter(parts.values()))
    if operation.structured == "vjp":
        given = [
            parts.get(i) or graph.call("zeros_like", (graph.make("item", node, i),), {}) for i in range(len(node.value))
        ]
        yield from vjp(node, tuple(given))
        return
    whole = tuple(
        parts[i] if i in parts else graph.zeros_of(some, graph.make("item", node, i)) for i in range(len(node.value))
    )
    dim = operation.argument(node.args, "dim")
    made = graph.call("stack" if node.op == "unbind" else "cat", (whole, dim), {})
    made.dims = x.dims
    yield x, made
