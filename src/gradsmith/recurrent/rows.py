"""Which operations treat every row of the batch alike, and in which order rows lie in memory."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch
from torch import fx

from gradsmith.native.refused import Refused

from .nodes import args_of, shape_of

aten = torch.ops.aten


class Layout(Enum):
    """Where the batch is: nowhere, in front, or elsewhere (a transposed operand)."""

    FLAT = "flat"
    ROWS = "rows"
    CROSSED = "crossed"


def layout_of(node: fx.Node, rows: int) -> Layout:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise Refused(f"{node.target} returns several results")
    where = [i for i, size in enumerate(value.shape) if size and size % rows == 0]
    if not where:
        return Layout.FLAT
    return Layout.ROWS if where == [0] else Layout.CROSSED


def per_row(node: fx.Node, rows: int) -> tuple[int, ...]:
    """The shape of one row: (rows * n, d, ...) holds (n, d, ...) per row."""
    shape = shape_of(node)
    return (shape[0] // rows, *shape[1:])


def elements(node: fx.Node, rows: int) -> int:
    count = 1
    for size in per_row(node, rows):
        count *= size
    return count


_DIM_ARGUMENT = {
    aten.slice.Tensor: 1, aten.select.int: 1, aten.cat.default: 1, aten.sum.dim_IntList: 1, aten.amax.default: 1,
    aten.amin.default: 1, aten.slice_scatter.default: 2, aten.select_scatter.default: 2, aten.unsqueeze.default: 1,
    aten.squeeze.dims: 1, aten.squeeze.dim: 1, aten.flip.default: 1, aten.prod.dim_int: 1, aten.any.dim: 1,
    aten.cumsum.default: 1,
}  # fmt: skip


def argument(node: fx.Node, index: int, name: str, default: Any) -> Any:
    return args_of(node)[index] if len(args_of(node)) > index else node.kwargs.get(name, default)


def dims_of(node: fx.Node) -> list[int]:
    """The dimensions an operation works along, counted from the front."""
    target: Any = node.target
    position = _DIM_ARGUMENT[target]
    raw: Any = argument(node, position, "dim", 0)
    first: Any = args_of(node)[0][0] if isinstance(args_of(node)[0], list | tuple) else args_of(node)[0]
    rank = len(shape_of(first)) + (node.target is aten.unsqueeze.default)
    if raw is None or raw == []:
        return list(range(rank))
    return [d % max(rank, 1) for d in (raw if isinstance(raw, list | tuple) else [raw])]


def check_rowwise(node: fx.Node, rows: int) -> None:
    """Refuse a forward or looped operation that would mix the rows of a batch."""
    layout = layout_of(node, rows)
    touched = [operand for operand in node.all_input_nodes if layout_of(operand, rows) is not Layout.FLAT]
    if not touched:
        return
    if layout is Layout.FLAT:
        raise Refused(f"{node.target} reduces over the batch inside the step")
    if layout is Layout.CROSSED or any(layout_of(operand, rows) is Layout.CROSSED for operand in touched):
        raise Refused(f"{node.target} moves the batch dimension inside the step")
    if node.target in _DIM_ARGUMENT and 0 in dims_of(node):
        raise Refused(f"{node.target} works along the batch dimension")
    if node.target is aten.permute.default and args_of(node)[1][0] != 0:
        raise Refused("the step moves the batch dimension")
    if node.target is aten.mm.default and layout_of(args_of(node)[1], rows) is not Layout.FLAT:
        raise Refused("the step multiplies the batch by itself")
