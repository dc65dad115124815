"""Derivatives of indexing, gathering and scattering."""

from __future__ import annotations

from typing import Any

import torch

from gradsmith.deriving.node import Node, is_number, key_of
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.structured.moving import at
from gradsmith.deriving.structured.registry import Pairs, rule


@rule
def getitem(y: Node, g: Any) -> Pairs:
    x, index = y.args
    parts = index if isinstance(index, tuple) else (index,)
    graph = y.graph
    hard = [
        (k, i)
        for k, i in enumerate(parts)
        if not (i is None or i is Ellipsis or (isinstance(i, slice) and key_of(i) == key_of(slice(None))))
    ]
    if not hard:
        yield x, g.reshape(graph.shape_of(x))
        return
    zeros = graph.zeros_of(g, x)
    tensors = [isinstance(i, Node) and i.is_tensor for _, i in hard]
    if (
        len(hard) == len(parts)
        and any(tensors)
        and all(t or isinstance(i, (int, Node)) for t, (_, i) in zip(tensors, hard))
    ):
        as_index = [i if t else graph.make("create", "torch.tensor", (i,), ()) for t, (_, i) in zip(tensors, hard)]
        yield x, graph.make("index_put", zeros, tuple(as_index), g, True)
        return
    if len(hard) == 1 and None not in parts:
        k, i = hard[0]
        dim = k - len(parts) if Ellipsis in parts[:k] else k
        if tensors[0]:
            if i.value.dtype == torch.bool or i.value.ndim != 1:
                raise Refused("this index has no rule.", "Use gather, index_select or torch.where.")
            yield x, zeros.index_add(dim, i, g)
        elif isinstance(i, slice):
            yield x, graph.make("slice_scatter", zeros, g, dim, i.start, i.stop, 1 if i.step is None else i.step)
        else:
            yield x, graph.make("select_scatter", zeros, g, dim, i)
        return
    if any(tensors):
        raise Refused("this mix of indices has no rule.", "Use gather or index_select.")
    yield x, _one_by_one(y, g)


def _one_by_one(y: Node, g: Any) -> Any:
    """x[1:, 2] as x[1:][:, 2]: one slice or integer at a time, so that each has its own scatter."""
    x, parts = y.args[0], y.args[1]
    rank = len(x.dims)
    used = sum(i is not None and i is not Ellipsis for i in parts)
    spread: list[Any] = []
    for i in parts:
        spread += [slice(None)] * (rank - used) if i is Ellipsis else [i]
    if None in spread:
        raise Refused("an index with None and several slices has no rule.", "Write the None as unsqueeze.")
    steps, current, dim = [], x, 0
    for i in spread:
        if isinstance(i, slice) and key_of(i) == key_of(slice(None)):
            dim += 1
            continue
        steps.append((current, dim, i))
        current = at(current, dim, i)
        dim += isinstance(i, slice)
    for source, dim, i in reversed(steps):
        zeros = y.graph.zeros_of(g, source)
        if isinstance(i, slice):
            g = y.graph.make("slice_scatter", zeros, g, dim, i.start, i.stop, 1 if i.step is None else i.step)
        else:
            g = y.graph.make("select_scatter", zeros, g, dim, i)
    return g


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
