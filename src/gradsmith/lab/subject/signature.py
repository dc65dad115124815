"""What tells two calls of one Function apart: a microsecond for each tensor, because it runs at every call."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor

_VALUES = frozenset({type(None), bool, int, str})


def signature(args: tuple[Any, ...]) -> Hashable:
    """Shapes, strides, dtypes, devices, requires_grad, and the small values; objects count by their type.

    Two signatures with one hash are taken for the same (`CallHook.record_call`), so parts that differ must hash differently.
    """
    try:
        # The index of the device, not the device: it is made and hashed in a third of the time.
        return tuple(
            [
                (value.shape, value.stride(), value.dtype, value.requires_grad, value.get_device())
                if type(value) is Tensor
                else _part(value)
                for value in args
            ]
        )
    except RuntimeError:  # a layout without strides
        return tuple([_part(value) for value in args])


def _part(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        if value.layout is not torch.strided:
            return (value.shape, value.layout, value.dtype, value.requires_grad)
        return (value.shape, value.stride(), value.dtype, value.requires_grad, value.get_device())
    if type(value) in _VALUES:
        # True is 1 for a dictionary, and not for a Function. Python hashes -1 and -2 alike, and both are common as `dim`.
        return (type(value), value, value == -2)
    if isinstance(value, (list, tuple)):
        return (type(value), *[_part(item) for item in value])
    # A float may change at every step (a schedule, a temperature): its type is enough.
    return type(value).__qualname__
