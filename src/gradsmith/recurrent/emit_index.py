"""Stage 3b: views cost nothing in C. Reading element `index` of a view is reading another element of its source."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from gradsmith.native.refused import Refused

from .nodes import args_of, shape_of
from .rows import Layout, argument, layout_of, per_row

aten = torch.ops.aten

Index = tuple[str, ...]
VIEWS = frozenset({
    aten.permute.default, aten.expand.default, aten.unsqueeze.default, aten.squeeze.dims, aten.squeeze.dim,
    aten.slice.Tensor, aten.select.int, aten.view.default, aten.reshape.default, aten.flip.default,
})  # fmt: skip


def row_shape(node: fx.Node, rows: int) -> tuple[int, ...]:
    """The shape that indices of `node` run over: one row of it, or all of it where there is no batch."""
    return per_row(node, rows) if layout_of(node, rows) is Layout.ROWS else shape_of(node)


def plus(text: str, offset: int) -> str:
    return text if offset == 0 else str(int(text) + offset) if text.isdigit() else f"({text} + {offset})"


def times(text: str, factor: int) -> str:
    return text if factor == 1 else str(int(text) * factor) if text.isdigit() else f"{text} * {factor}"


def linear(index: Index, shape: tuple[int, ...]) -> str:
    """Row-major position of `index` in `shape`."""
    terms: list[str] = []
    stride = 1
    constant = 0
    for position, size in zip(reversed(index), reversed(shape)):
        if position.isdigit():
            constant += int(position) * stride
        else:
            terms.append(times(position, stride))
        stride *= size
    if constant or not terms:
        terms.append(str(constant))
    return terms[0] if len(terms) == 1 else "(" + " + ".join(terms) + ")"


def broadcast(index: Index, shape: tuple[int, ...]) -> Index:
    """The index into an operand of `shape` that takes part in an operation at `index`."""
    tail = index[len(index) - len(shape) :] if shape else ()
    return tuple("0" if size == 1 else position for position, size in zip(tail, shape))


def through(node: fx.Node, index: Index, rows: int) -> Index:
    """Where a view reads its source: `index` into the source of `node`."""
    source: fx.Node = args_of(node)[0]
    inner = row_shape(source, rows)
    target = node.target
    if target is aten.permute.default:
        order: Any = args_of(node)[1]
        positions = ["0"] * len(inner)
        for place, dim in zip(index, order):
            positions[dim % len(inner)] = place
        return tuple(positions)
    if target is aten.expand.default:
        return broadcast(index, inner)
    if target is aten.slice.Tensor:
        dim = argument(node, 1, "dim", 0) % len(inner)
        start, stride = argument(node, 2, "start", 0) or 0, argument(node, 4, "step", 1)
        start = start + inner[dim] if start < 0 else min(start, inner[dim])
        return tuple(plus(times(p, stride), start) if d == dim else p for d, p in enumerate(index))
    if target is aten.select.int:
        dim = args_of(node)[1] % len(inner)
        at = args_of(node)[2] % inner[dim]
        return (*index[:dim], str(at), *index[dim:])
    if target is aten.flip.default:
        dims = {d % len(inner) for d in args_of(node)[1]}
        return tuple(f"({inner[d] - 1} - {p})" if d in dims else p for d, p in enumerate(index))
    return _reshaped(index, row_shape(node, rows), inner)


def _reshaped(index: Index, outer: tuple[int, ...], inner: tuple[int, ...]) -> Index:
    """Element `index` of a tensor of shape `outer`, found in the same memory read as shape `inner`."""
    result: list[str] = []
    o, i = 0, 0
    while o < len(outer) or i < len(inner):
        o_end, i_end = min(o + 1, len(outer)), min(i + 1, len(inner))
        o_size = outer[o] if o < len(outer) else 1
        i_size = inner[i] if i < len(inner) else 1
        # Widen both sides until they cover the same elements.
        while o_size != i_size:
            if o_size < i_size:
                o_size *= outer[o_end]
                o_end += 1
            else:
                i_size *= inner[i_end]
                i_end += 1
        result.extend(_unfold(linear(index[o:o_end], outer[o:o_end]), inner[i:i_end]))
        o, i = o_end, i_end
    return tuple(result)


def _unfold(flat: str, shape: tuple[int, ...]) -> list[str]:
    if flat.isdigit():
        rest, digits = int(flat), []
        for size in reversed(shape):
            digits.append(str(rest % max(size, 1)))
            rest //= max(size, 1)
        return digits[::-1]
    wide = [d for d, size in enumerate(shape) if size != 1]
    if len(wide) <= 1:
        return [flat if d in wide else "0" for d in range(len(shape))]
    result = ["0"] * len(shape)
    stride = 1
    for d in reversed(wide):
        text = f"({flat} / {stride})" if stride > 1 else flat
        result[d] = text if d == wide[0] else f"({text} % {shape[d]})"
        stride *= shape[d]
    return result


def check_view(node: fx.Node, rows: int) -> None:
    """Refuse a view whose source lies across rows."""
    source: fx.Node = args_of(node)[0]
    if layout_of(source, rows) is Layout.CROSSED or layout_of(node, rows) is Layout.CROSSED:
        raise Refused(f"{node.target} moves the batch dimension")
