"""Derivatives of indexing, gathering and scattering."""

from __future__ import annotations

from typing import Any

import torch

from gradsmith.deriving.memory import is_all, spread_out
from gradsmith.deriving.node import Node, is_number
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.structured.kernels import vjp
from gradsmith.deriving.structured.moving import at
from gradsmith.deriving.structured.registry import Pairs, rule


@rule
def getitem(y: Node, g: Any) -> Pairs:
    """One slice or integer: a scatter. Tensors: an accumulating index_put. What mixes them: torch's own product."""
    x, index = y.args
    parts = index if isinstance(index, tuple) else (index,)
    tensors = [isinstance(i, Node) and i.is_tensor for i in parts]
    plain = [i for i in parts if i is not None]
    if any(tensors):
        spread = spread_out(tuple(plain), len(x.dims))
        simple = len(plain) == len(parts) and all(is_all(i) or (isinstance(i, Node) and i.is_tensor) for i in spread)
        if simple:
            yield x, _by_tensors(y, g, spread)
        else:
            yield from vjp(y, g)
        return
    if len(plain) < len(parts):
        g = _without_ones(g, parts, len(x.dims))
    if all(is_all(i) or i is Ellipsis for i in plain):  # nothing but None: every element is there
        yield x, g
        return
    yield x, put(y.graph.zeros_of(g, x), plain, g)


def put(base: Node, index: list[Any], value: Any) -> Any:
    """`base` with `value` added where the index points, in integers and slices."""
    made = base.graph.make("placed", base, ((tuple(index), value),))
    made.dims = base.dims
    return made


def _without_ones(g: Any, parts: tuple[Any, ...], rank: int) -> Any:
    """The gradient without the dimensions that None has added."""
    used = sum(i is not None and i is not Ellipsis for i in parts)
    ones, position = [], 0
    for i in parts:
        if i is None:
            ones.append(position)
        position += rank - used if i is Ellipsis else int(i is None or isinstance(i, slice))
    if _is_neg(g):
        return -_squeezed(g.args[0], tuple(ones))
    return _squeezed(g, tuple(ones))


def _squeezed(g: Any, ones: tuple[int, ...]) -> Any:
    """Without these dimensions of size 1; a sum that kept them does not keep them any more."""
    if g.op == "sum" and g.back and g.grad_of is None and g.args[1] is not None and g.args[2]:
        rank = len(g.dims)
        summed = {d % rank for d in (g.args[1] if isinstance(g.args[1], tuple) else (g.args[1],))}
        if summed == set(ones):
            return g.graph.make("sum", g.args[0], g.args[1], False)
    return g.squeeze(ones[0] if len(ones) == 1 else ones)


def _is_neg(g: Any) -> bool:
    return bool(g.op == "neg" and g.back and g.grad_of is None)


def _by_tensors(y: Node, g: Any, spread: list[Any]) -> Any:
    """The gradient of x[i, j] or x[:, i]: what was read from one place is added up there."""
    graph, zeros = y.graph, y.graph.zeros_of(g, y.args[0])
    while is_all(spread[-1]):
        spread = spread[:-1]
    where = [d for d, i in enumerate(spread) if not is_all(i)]
    first = spread[where[0]]
    if len(where) == 1 and where[0] > 0 and first.value.dtype != torch.bool:
        flat = first if first.value.ndim == 1 else first.flatten()
        rows = g if first.value.ndim == 1 else g.flatten(where[0], where[0] + first.value.ndim - 1)
        return (
            zeros.index_add(where[0], flat, rows)
            if first.value.ndim
            else zeros.index_add(where[0], first.reshape((1,)), g.unsqueeze(where[0]))
        )
    if len(where) == len(spread):
        return graph.make("index_put", zeros, tuple(spread), g, True)
    indices = tuple(None if is_all(i) else i for i in spread)
    made = graph.make("create", "torch.ops.aten.index_put", (zeros, indices, g, True), ())
    made.dims = y.args[0].dims
    return made


@rule
def embedding(y: Node, g: Any) -> Pairs:
    index, weight = y.args
    yield weight, y.graph.make("index_put", y.graph.zeros_of(g, weight), (index,), g, True)


@rule
def take_along_dim(y: Node, g: Any) -> Pairs:
    x, index, dim = y.args
    if dim is None or index.value.shape != y.value.shape:
        raise Refused("take_along_dim with broadcasting has no rule.", "Use gather.")
    yield x, y.graph.zeros_of(g, x).scatter_add(dim, index, g)


@rule
def take(y: Node, g: Any) -> Pairs:
    x, index = y.args
    flat = y.graph.make("new_zeros", g, (y.graph.make("numel", x),), None)
    yield x, flat.index_add(0, index.reshape((-1,)), g.reshape((-1,))).reshape(y.graph.shape_of(x))


@rule
def scatter(y: Node, g: Any) -> Pairs:
    x, dim, index, src = y.args
    yield x, g.scatter(dim, index, 0)
    if isinstance(src, Node) and src.is_tensor:
        if src.value.shape != index.value.shape:
            raise Refused("scatter with an index smaller than src has no rule.")
        yield src, g.gather(dim, index)


@rule
def scattered(y: Node, g: Any) -> Pairs:
    _, dim, index, src = y.args
    if src.value.shape != index.value.shape:
        raise Refused("scatter_add with an index smaller than src has no rule.")
    yield src, g.gather(dim, index)


@rule
def index_put(y: Node, g: Any) -> Pairs:
    x, indices, values, accumulate = y.args
    zero = y.graph.make("new_full", g, (), 0, None)
    yield x, g if accumulate else y.graph.make("index_put", g, indices, zero, False)
    if isinstance(values, Node) and values.needs_grad:
        yield values, g[indices]


@rule
def select_scatter(y: Node, g: Any) -> Pairs:
    x, src, dim, index = y.args
    yield x, y.graph.make("select_scatter", g, 0 * at(g, dim, index), dim, index)
    yield src, at(g, dim, index)


@rule
def slice_scatter(y: Node, g: Any) -> Pairs:
    x, src, dim, start, end, step = y.args
    part = slice(start, end, None if is_number(step, 1) else step)
    yield x, y.graph.make("slice_scatter", g, 0 * at(g, dim, part), dim, start, end, step)
    yield src, at(g, dim, part)


@rule
def masked_select(y: Node, g: Any) -> Pairs:
    x, mask = y.args
    if mask.value.shape != x.value.shape:
        raise Refused("masked_select with broadcasting has no rule.")
    yield x, y.graph.make("masked_scatter", y.graph.zeros_of(g, x), mask, g)


@rule
def assign(y: Node, g: Any) -> Pairs:
    x, index, value = y.args
    if isinstance(x, Node) and x.needs_grad:
        yield x, y.graph.make("assign", g, index, 0)
    if isinstance(value, Node):
        yield value, g[index]


@rule
def placed(y: Node, g: Any) -> Pairs:
    x, places = y.args
    yield x, g
    for index, value in places:
        yield value, g[index]
