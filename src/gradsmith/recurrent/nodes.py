"""What one asks of a captured node: its shape, its dtype, its arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx


def shape_of(node: fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def dtype_of(node: fx.Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def args_of(node: fx.Node) -> tuple[Any, ...]:
    """The arguments without the union of everything an argument could be."""
    return node.args
