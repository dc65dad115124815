"""Derivatives of operations that move elements."""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.structured.kernels import vjp
from gradsmith.deriving.structured.registry import Pairs, rule


@rule
def transpose(y: Node, g: Any) -> Pairs:
    x, a, b = y.args
    rank = len(x.dims)
    last = sorted((value_of(a) % rank, value_of(b) % rank)) == [rank - 2, rank - 1]
    yield x, g.mT if last else g.transpose(a, b)


@rule
def permute(y: Node, g: Any) -> Pairs:
    order = [value_of(d) % len(y.args[1]) for d in y.args[1]]
    yield y.args[0], g.permute(tuple(order.index(i) for i in range(len(order))))


@rule
def squeeze(y: Node, g: Any) -> Pairs:
    x, dim = y.args
    if isinstance(dim, tuple) or dim is None or not x.dims or x.value.shape[value_of(dim)] != 1:
        yield x, g.reshape(y.graph.shape_of(x))
    else:
        yield x, g.unsqueeze(dim)


def at(value: Node, dim: Any, index: Any) -> Any:
    """`value[..., index]` or `value[:, index]`, whichever is shorter."""
    rank = len(value.dims)
    d = value_of(dim) % rank
    return value[(Ellipsis, index)] if d == rank - 1 and d > 0 else value[(slice(None),) * d + (index,)]


@rule
def cat(y: Node, g: Any) -> Pairs:
    tensors, dim = y.args
    if isinstance(tensors, Node):  # a list that a loop has filled: every turn has its slice
        piece = y.graph.make("floor_divide", y.graph.size(y, value_of(dim)), tensors.dims[0])
        yield tensors, y.graph.make("split", g, piece, dim)
        return
    if _of_one_size(y, tensors, value_of(dim)):
        yield from _parts_for(tensors, y.graph.make("chunk", g, len(tensors), dim))
        return
    start: Any = None
    for i, tensor in enumerate(tensors):
        size = y.graph.size(tensor, value_of(dim))
        stop = None if i == len(tensors) - 1 else size if start is None else y.graph.arith("add", start, size)
        yield tensor, at(g, dim, slice(start, stop))
        start = stop


def _of_one_size(y: Node, tensors: Any, dim: int) -> bool:
    """Do all pieces of a cat have the same size, whatever it is, and does each get a gradient?"""
    sizes = [t.dims[dim] for t in tensors if t.dims]
    alike = len(sizes) == len(tensors) > 1 and all(y.graph.same(sizes[0], size) for size in sizes)
    return alike and all(t.needs_grad for t in tensors) and len(set(tensors)) == len(tensors)


@rule
def stack(y: Node, g: Any) -> Pairs:
    if isinstance(y.args[0], Node):  # a list that a loop has filled
        yield y.args[0], y.graph.make("unbind", g, y.args[1])
        return
    tensors = y.args[0]
    if len(set(tensors)) == len(tensors) > 1 and all(t.needs_grad for t in tensors):
        yield from _parts_for(tensors, y.graph.make("unbind", g, y.args[1]))
        return
    for i, tensor in enumerate(tensors):
        yield tensor, at(g, y.args[1], i)


def _parts_for(tensors: Any, parts: Node) -> Pairs:
    """Each its own part of a gradient that is taken apart in one line."""
    for i, tensor in enumerate(tensors):
        part = parts.graph.make("item", parts, i)
        part.dims = tensor.dims
        yield tensor, part


@rule
def narrow(y: Node, g: Any) -> Pairs:
    x, dim, start, length = y.args
    stop = y.graph.arith("add", start, length)
    spread = [slice(None)] * (value_of(dim) % len(x.dims)) + [slice(start, stop)]
    made = y.graph.make("placed", y.graph.zeros_of(g, x), ((tuple(spread), g),))
    made.dims = x.dims
    yield x, made


@rule
def diagonal(y: Node, g: Any) -> Pairs:
    x, offset, a, b = y.args
    rank = len(x.dims)
    if x.value.shape[value_of(a)] != x.value.shape[value_of(b)]:
        yield from vjp(y, g)
        return
    y.graph.agree(x.dims[value_of(a)], x.dims[value_of(b)])
    yield x, y.graph.call("diag_embed", (g, offset, value_of(a) % rank - rank, value_of(b) % rank - rank), {})


@rule
def diag(y: Node, g: Any) -> Pairs:
    x, offset = y.args
    if len(x.dims) == 2 and x.value.shape[0] != x.value.shape[1]:
        yield from vjp(y, g)
        return
    yield x, y.graph.make("diag", g, offset)


@rule
def repeat(y: Node, g: Any) -> Pairs:
    x, repeats = y.args
    rank, extra = len(x.dims), len(repeats) - len(x.dims)
    shape: list[Any] = list(repeats[:extra])
    for i in range(rank):
        shape += [repeats[extra + i], y.graph.size(x, i)]
    dims = (*range(extra), *(extra + 2 * i for i in range(rank)))
    yield x, g.reshape(tuple(shape)).sum(dims[0] if len(dims) == 1 else dims)


@rule
def repeat_interleave(y: Node, g: Any) -> Pairs:
    x, repeats, dim = y.args
    if dim is None or (isinstance(repeats, Node) and repeats.is_tensor):
        yield from vjp(y, g)
        return
    d = value_of(dim) % len(x.dims)
    shape = [y.graph.size(x, i) for i in range(len(x.dims))]
    yield x, g.reshape((*shape[: d + 1], repeats, *shape[d + 1 :])).sum(d + 1)


@rule
def pad(y: Node, g: Any) -> Pairs:
    x, widths, mode, _ = y.args
    if mode != "constant":
        yield from vjp(y, g)
        return
    yield x, y.graph.make("pad", g, tuple(-w for w in widths), "constant", None)
