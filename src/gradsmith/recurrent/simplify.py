"""Tidy a captured graph: drop copies and multiplications by one, merge equal nodes, read splits as slices."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from .nodes import args_of, dtype_of, shape_of

aten = torch.ops.aten

_SAME_VALUE = {
    aten.alias.default, aten.detach.default, aten.clone.default, aten.lift_fresh_copy.default, aten.lift_fresh.default,
    aten.contiguous.default, aten._unsafe_view.default,
}  # fmt: skip
_SUMS = {aten.add.Tensor, aten.sub.Tensor}
_RESHAPES = {aten.view.default, aten.reshape.default, aten.expand.default}


def simplify(graph: fx.Graph, rows: int) -> fx.Graph:
    """`rows` is the number of rows that the batch was captured with."""
    for node in list(graph.nodes):
        if node.op == "call_function":
            replacement = _simpler(graph, node, rows)
            if replacement is not None:
                node.replace_all_uses_with(replacement)
                graph.erase_node(node)
    _merge_equal(graph)
    _sweep(graph)
    return graph


def _simpler(graph: fx.Graph, node: fx.Node, rows: int) -> fx.Node | None:
    """A node with the same value and less work, or None."""
    target, args = node.target, args_of(node)
    source: fx.Node = args[0] if args else node
    if target in _SAME_VALUE and shape_of(node) == shape_of(source):
        return source
    if target is aten._to_copy.default and dtype_of(node) == dtype_of(source):
        return source
    if target in _RESHAPES and shape_of(node) == shape_of(source):
        return source
    if target is aten.slice.Tensor and shape_of(node) == shape_of(source):
        return source  # `x[:, a:b]` was captured as two slices, the first of everything (torch 2.6)
    if target is aten.slice_scatter.default and _same_kind(node, args[1]):
        put: fx.Node = args[1]  # the gradient of the first of them: everything is written over
        return put
    if target is aten.permute.default:
        return _upright(graph, node, rows) or _fewer_permutes(node)
    if target in (aten.mul.Tensor, aten.div.Tensor) and args[1] in (1, 1.0) and _same_kind(node, source):
        return source
    if target is aten.full_like.default:
        # The tensor it is like is only asked for its shape.
        return _full(graph, node, args[1])
    if target is operator.getitem:
        return _slice_of_split(graph, node)
    return None


def _same_kind(node: fx.Node, other: Any) -> bool:
    return isinstance(other, fx.Node) and dtype_of(node) == dtype_of(other) and shape_of(node) == shape_of(other)


def _full(graph: fx.Graph, node: fx.Node, value: Any) -> fx.Node:
    with graph.inserting_before(node):
        filled = graph.call_function(aten.full.default, (list(shape_of(node)), value), {"dtype": dtype_of(node)})
    filled.meta = dict(node.meta)
    return filled


def _fewer_permutes(node: fx.Node) -> fx.Node | None:
    source, order = args_of(node)
    assert isinstance(source, fx.Node)
    if source.target is aten.permute.default:
        base: fx.Node = args_of(source)[0]
        inner = args_of(source)[1]
        rank = len(inner)
        combined = [inner[d % rank] % rank for d in order]
        if combined == list(range(rank)):
            return base
        node.args = (base, combined)
    return None


def _upright(graph: fx.Graph, node: fx.Node, rows: int) -> fx.Node | None:
    """The transpose of a value whose columns are the batch, computed with the batch in its rows: (A B)^T = B^T A^T, and
    (A^T + B^T)^T = A + B."""
    source: fx.Node = args_of(node)[0]
    shape = shape_of(source)
    if len(shape) != 2 or shape[1] % rows or [d % 2 for d in args_of(node)[1]] != [1, 0]:
        return None
    operands = args_of(source)
    with graph.inserting_before(node):
        if source.target is aten.mm.default:
            turned = [_transposed(graph, operand) for operand in reversed(operands)]
        elif source.target in _SUMS and all(_is_transpose(o) and shape_of(o) == shape for o in operands):
            turned = [_transposed(graph, operand) for operand in operands]
        else:
            return None
        upright = graph.call_function(source.target, tuple(turned), dict(source.kwargs))
    upright.meta = dict(node.meta)
    return upright


def _is_transpose(node: Any) -> bool:
    return isinstance(node, fx.Node) and node.target is aten.permute.default and len(shape_of(node)) == 2


def _transposed(graph: fx.Graph, matrix: Any) -> fx.Node:
    if _is_transpose(matrix):
        base: fx.Node = args_of(matrix)[0]
        return base
    turned = graph.call_function(aten.permute.default, (matrix, [1, 0]))
    turned.meta = {**matrix.meta, "val": matrix.meta["val"].t()}
    return turned


def _slice_of_split(graph: fx.Graph, node: fx.Node) -> fx.Node | None:
    split, index = args_of(node)
    if getattr(split, "target", None) is not aten.split_with_sizes.default:
        return None
    assert isinstance(split, fx.Node)
    source, sizes, *rest = args_of(split)
    dim: Any = rest[0] if rest else split.kwargs.get("dim", 0)
    start = sum(sizes[:index])
    with graph.inserting_before(node):
        piece = graph.call_function(aten.slice.Tensor, (source, dim, start, start + sizes[index]))
    piece.meta = dict(node.meta)
    return piece


def _merge_equal(graph: fx.Graph) -> None:
    seen: dict[Any, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        # repr tells 1 from 1.0 and True, which hash alike.
        key = (node.target, repr(args_of(node)), repr(sorted(node.kwargs.items())))
        if key in seen:
            node.replace_all_uses_with(seen[key])
            graph.erase_node(node)
        else:
            seen[key] = node


def _sweep(graph: fx.Graph) -> None:
    for node in reversed(list(graph.nodes)):
        if node.op in ("call_function", "get_attr") and not node.users:
            graph.erase_node(node)
