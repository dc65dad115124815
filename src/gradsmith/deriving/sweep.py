"""The reverse sweep: from the gradients of the outputs to the gradients of the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from gradsmith.deriving import structured
from gradsmith.deriving.dims import members
from gradsmith.deriving.graph import Graph
from gradsmith.deriving.indices import consecutive
from gradsmith.deriving.loops.back import pulled
from gradsmith.deriving.node import Node, is_number, value_of
from gradsmith.deriving.refusal import LoopRefused, Refused
from gradsmith.deriving.structured import fused, idioms
from gradsmith.deriving.table import Operation, compiled


def swept(graph: Graph, outputs: list[Node], gradients: dict[Node, Node], inputs: list[Node]) -> dict[Node, Node]:
    """The gradient of every input that has one, exactly of the input's shape and dtype."""
    graph.backward = True
    contributions: dict[Node, list[Any]] = {out: [g] for out, g in gradients.items()}
    _sweep(graph, sorted(_ancestors(outputs), key=lambda n: -n.serial), contributions)
    found = {}
    for node in inputs:
        if node in contributions:
            whole = total(node, contributions[node])
            _told(whole, node)
            found[node] = fitted(node, whole)
    return found


def _sweep(graph: Graph, nodes: list[Node], contributions: dict[Node, list[Any]]) -> None:
    """Hand the gradient of every value on to its operands, the last value first."""
    parts: dict[Node, dict[int, Any]] = {}
    for node in nodes:
        if node in parts:
            pairs = _of_parts(graph, node, parts[node])
        elif node not in contributions or node.op == "input":
            continue
        else:
            g = total(node, contributions[node])
            operation = graph.operations.get(node.op)
            if not _takes_any_shape(node, operation, g) and not idioms.spreads(node):
                g = fitted(node, g)
            if g.op not in ("grad", "carried") and g.back:
                if g.grad_of is None and _worth_a_name(node, operation):
                    g.grad_of = node
                if g.near is None or (node.name and not g.near.name):
                    g.near = node
            if node.op == "item":
                parts.setdefault(node.args[0], {})[value_of(node.args[1])] = g
                continue
            kernel = fused.fused(node, g) if graph.fast else None
            pairs = kernel or idioms.whole(node, g, fitted) or _pairs(node, operation, g)
        try:
            for operand, contribution in pairs:
                if isinstance(operand, Node) and operand.needs_grad:
                    _told(contribution, operand)
                    contributions.setdefault(operand, []).append(summed(operand, contribution))
        except Refused as refusal:
            raise refusal.at(node.line) from None


def _told(contribution: Any, operand: Node) -> None:
    """For its name, should it get one: of whose gradient it is a part."""
    while isinstance(contribution, Node) and contribution.op == "neg":
        contribution = contribution.args[0]
    if isinstance(contribution, Node) and contribution.back and contribution.terms_of is None:
        contribution.terms_of = operand


def _of_parts(graph: Graph, node: Node, parts: dict[int, Any]) -> Iterator[tuple[Any, Any]]:
    if node.op != "loop":
        return structured.of_parts(node, parts)
    return pulled(
        node,
        parts,
        lambda nodes, contributions: _sweep(graph, nodes, contributions),
        lambda outer, found: fitted(outer, total(outer, found)),
    )


def _ancestors(outputs: list[Node]) -> set[Node]:
    seen: set[Node] = set()
    todo = [out for out in outputs if out.needs_grad]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [n for n in node.operands if n.needs_grad]
    return seen


def _worth_a_name(node: Node, operation: Operation | None) -> bool:
    several = sum(n.needs_grad for n in node.operands) > 1
    return bool(node.name) or several or operation is None or operation.kind in "sxo"


def _takes_any_shape(node: Node, operation: Operation | None, g: Node) -> bool:
    """May the gradient stay broadcast? Element by element it may, and a reduction spreads it anyway."""
    if operation is None:
        return False
    if operation.kind == "e":
        return operation.structured != "outer"
    if operation.kind == "r":
        keep = operation.argument(node.args, "keepdim") or operation.argument(node.args, "dim") is None
        return g.dims == () or bool(keep)
    return False


def _pairs(node: Node, operation: Operation | None, g: Node) -> Iterator[tuple[Any, Any]]:
    if operation is None:
        raise Refused(f"`{node.op}` has no derivative rule.", "Write it with other operations.")
    if operation.structured is not None:
        yield from structured.RULES[operation.structured](node, g)
        return
    scope = {
        **dict(zip(operation.params, node.args)),
        "g": g,
        "y": node,
        "torch": Names(node.graph),
        "F": Names(node.graph),
        "math": MathText(node.graph),
        "shape_of": node.graph.shape_of,
        "zeros_of": node.graph.zeros_of,
        "eye_like": lambda x: node.graph.call("diag_embed", (x.diagonal().ones_like(),), {}),
    }
    for param, argument in zip(operation.params, node.args):
        if not isinstance(argument, Node) or not argument.needs_grad:
            continue
        rule = operation.rules.get(param)
        if rule is None:
            raise Refused(
                f"`{operation.name}` has no derivative rule for its argument {param}.",
                "Write it with other operations.",
            )
        if rule.startswith("@"):
            yield from (pair for pair in structured.RULES[rule[1:]](node, g) if pair[0] is argument)
        else:
            yield argument, eval(compiled(rule), scope)  # a line of our own table


class Names:
    """`torch.cos(x)` in a rule, on Nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        if name in ("special", "linalg"):
            return self
        return lambda *args, **kwargs: self._graph.call(name, args, kwargs)


class MathText:
    """`math.sqrt(math.pi)` in a rule, kept as it is written."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        if isinstance(getattr(math, name), float):
            return self._graph.literal(f"math.{name}", getattr(math, name))
        return lambda *args: self._graph.make("python", f"math.{name}", *args)


# ---- broadcasting


def total(node: Node, contributions: list[Any]) -> Any:
    """The sum of what arrives; unlike shapes are brought to the node's own first, or small ones would count twice."""
    graph = node.graph
    if node.is_parts:  # a list that a loop has filled
        if len(contributions) > 1:
            raise LoopRefused("a list that a loop has filled is used twice.", "Stack it once.")
        return contributions[0]
    contributions = _accumulated(node, [_tiled(node, c) for c in contributions])
    placed = [c for c in contributions if is_placed(c)]
    if len(placed) > 1 and not node.inside:
        joined = joined_of(placed) if len(placed) == len(contributions) else None
        if joined is not None:
            joined.dims = node.dims
            return joined
        rest = [c for c in contributions if not is_placed(c)]
        base = placed[0].args[0] if not rest else fitted(node, total(node, rest))
        made: Node = graph.make("placed", base, tuple(place for c in reversed(placed) for place in c.args[1]))
        made.dims = node.dims
        return made
    if len({tuple(map(_identity, c.dims)) for c in contributions}) > 1:
        contributions = [summed(node, c, force=True) for c in contributions]
    result: Any = None
    for c in _like_terms(graph, contributions):
        result = c if result is None else graph.arith("add", result, c)
    return result


def _like_terms(graph: Graph, contributions: list[Any]) -> list[Any]:
    """`x * x` hands the same on twice; g - 2 * g is -g."""
    if len({_term(c)[1] for c in contributions}) == len(contributions):
        return contributions
    times: dict[Any, Any] = {}
    for c in contributions:
        number, base = _term(c)
        times[base] = times.get(base, 0) + number
    return [graph.product([number, base], []) for base, number in times.items() if number] or [
        graph.product([0, contributions[0]], [])
    ]


def _term(c: Any) -> tuple[Any, Any]:
    """2 * g as (2, g)."""
    if isinstance(c, Node) and c.back and c.grad_of is None:
        if c.op == "neg":
            number, base = _term(c.args[0])
            return -number, base
        if c.op == "mul" and is_number(c.args[0]):
            return c.args[0], c.args[1]
    return 1, c


def _accumulated(node: Node, contributions: list[Any]) -> list[Any]:
    """Gradients that are added up by index, each into zeros of its own, added up into the same zeros."""
    into = [c for c in contributions if adds_into_zeros(c)]
    if len(into) < 2:
        return contributions
    made = into[0]
    for c in into[1:]:
        dims, made.near = made.dims, node
        args = ((made, *c.args[1][1:]), c.args[2]) if c.op == "create" else (made, *c.args[1:])
        made = c.graph.make(c.op, c.args[0], *args) if c.op == "create" else c.graph.make(c.op, *args)
        made.dims = dims
    return [c for c in contributions if c not in into] + [made]


def adds_into_zeros(c: Any) -> bool:
    """`zeros.index_put(indices, values, accumulate=True)` and its like."""
    if not isinstance(c, Node) or not c.back or c.grad_of is not None:
        return False
    if c.op == "create":
        return bool(c.args[0] == "torch.ops.aten.index_put" and c.args[1][0].op == "new_zeros")
    adds = c.op in ("index_add", "scatter_add") or (c.op == "index_put" and c.args[3] is True)
    return bool(adds and c.args[0].op == "new_zeros")


def joined_of(placed: list[Node]) -> Any:
    """Gradients of x[..., :n] and x[..., n:] are the gradient of x, one after the other; None where they are not all of it."""
    places = [place for c in placed for place in c.args[1]]
    found = consecutive([index for index, _ in places])
    if found is None:
        return None
    order, dim = found
    return placed[0].graph.make("cat", tuple(places[i][1] for i in order), dim)


def is_placed(c: Any) -> bool:
    """A gradient that is zero but for a part."""
    return isinstance(c, Node) and c.op == "placed" and c.args[0].op == "new_zeros"


def _tiled(node: Node, c: Any) -> Any:
    if isinstance(c, Node):
        return c
    return node.graph.make("full_like", node, c, None)


def _identity(dim: Any) -> Any:
    return frozenset(n.serial if isinstance(n, Node) else -n for n in members(dim))


def _differs(graph: Graph, big: Any, small: Any) -> bool:
    """May the first be larger than the second?"""
    if graph.same(big, small):
        return False
    return any(not any(graph.same(p, q) for q in members(small)) for p in members(big) if p != 1)


def summed(node: Node, c: Any, *, force: bool = False) -> Any:
    """The gradient `c` of a broadcast value, summed to the value itself. What may differ elsewhere is left to the input."""
    graph = node.graph
    if node.is_parts:
        return c
    c = _tiled(node, c)
    if c.op == "neg" and c.back and c.grad_of is None:
        return graph.neg(summed(node, c.args[0], force=force))
    extra = len(c.dims) - len(node.dims)
    own = (None,) * extra + node.dims[max(0, -extra) :]
    sure = [i for i, (p, q) in enumerate(zip(c.dims, own)) if q == 1 and p != 1]
    maybe = [i for i, (p, q) in enumerate(zip(c.dims, own)) if i not in sure and (q is None or _differs(graph, p, q))]
    if not sure and not maybe:
        return c
    if node.dims == () and node.op != "input":
        # A number made of inputs may be a tensor another time: the sum is left to the input.
        own_kind = graph.operations[node.op].kind if node.op in graph.operations else ""
        return c if own_kind == "e" and not force else graph.make("sum", c, None, False)
    if sure and None not in own:
        dims = tuple(i - len(c.dims) for i in sure)
        c = graph.make("sum", c, dims[0] if len(dims) == 1 else dims, True)
        return summed(node, c, force=force) if maybe else c
    if sure and graph.trusting and all(own[i] is None for i in maybe):
        c = graph.make("sum", c, tuple(sorted({*sure, *maybe})), False)
        for i in sure:
            c = graph.make("unsqueeze", c, i - extra)
        return c
    operation = graph.operations.get(node.op)
    if force or (node.op != "input" and (operation is None or operation.kind != "e")):
        return graph.make("sum_to_size", c, graph.shape_of(node))
    return c


def fitted(node: Node, c: Any) -> Any:
    """The gradient in the very shape and dtype of the value."""
    graph = node.graph
    if node.is_parts:
        return c
    c = summed(node, c, force=True)
    unlike = len(c.dims) < len(node.dims) or any(_differs(graph, q, p) for p, q in zip(c.dims, node.dims))
    if unlike and not (c.value.shape == node.value.shape and node.op != "input"):
        c = graph.make("expand", c, graph.shape_of(node))
    if c.value.dtype != node.value.dtype and isinstance(node.value, torch.Tensor):
        c = graph.make("to", c, graph.make("dtype", node))
    return c
