"""What tells two calls of one Function apart, computed in a few microseconds because it runs at every call."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor


def signature(args: tuple[Any, ...]) -> Hashable:
    """Shapes, strides, dtypes, devices, requires_grad, and the small values; objects count by their type."""
    return tuple([_part(value) for value in args])


def _part(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        if value.layout is not torch.strided:
            return (value.shape, value.layout, value.dtype, value.requires_grad)
        return (value.shape, value.stride(), value.dtype, value.device, value.requires_grad)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return (type(value), *[_part(item) for item in value])
    # A float may change at every step (a schedule, a temperature): its type is enough.
    return type(value).__qualname__
