"""Run captured nodes with torch itself, for any number of rows: what happens once, hoisted, or after the loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, fx

_LARGEST_SIZE = 1 << 40


def run_nodes(nodes: Iterable[fx.Node], values: dict[fx.Node, Tensor], traced_rows: int, rows: int) -> None:
    """Compute `nodes` in order into `values`; sizes written for `traced_rows` are read as sizes for `rows`."""

    def at_run_time(argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            return values[argument]
        if isinstance(argument, list | tuple):
            return [at_run_time(item) for item in argument]
        if type(argument) is int and 0 < argument < _LARGEST_SIZE and argument % traced_rows == 0:
            return argument // traced_rows * rows
        return argument

    for node in nodes:
        target: Any = node.target
        if target is torch.ops.aten.view.default:
            target = torch.ops.aten.reshape.default  # strides differ from those traced
        values[node] = target(
            *(at_run_time(argument) for argument in node.args),
            **{name: at_run_time(argument) for name, argument in node.kwargs.items()},
        )
