"""Shapes that a kernel may be written for: it is given pointers, so that nothing in forward refuses a guess that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.subject.foreign import runs_kernels
from gradsmith.lab.subject.target import Target


def other_shapes(target: Target, args: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The arguments with all tensors of one dimension and one length, then with even sizes; and what to call them."""
    tensors = [a for a in args if isinstance(a, Tensor) and a.ndim]
    if not tensors or not runs_kernels(target):
        return
    longest = max(a.numel() for a in tensors)
    if any(a.ndim > 1 for a in tensors):
        yield _changed(args, lambda a: _repeated(a.reshape(-1), 0, longest)), "with inputs of one dimension"
    if any(size % 2 for a in tensors for size in a.shape):
        yield _changed(args, _even), "with even sizes"


def _changed(args: tuple[Any, ...], change: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    def changed(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.ndim:
            return value
        return change(value.detach()).clone().requires_grad_(value.requires_grad)

    return tuple(changed(value) for value in args)


def _even(tensor: Tensor) -> Tensor:
    for dim, size in enumerate(tensor.shape):
        tensor = _repeated(tensor, dim, size + size % 2)
    return tensor


def _repeated(tensor: Tensor, dim: int, size: int) -> Tensor:
    """As long as wanted along one dimension, with its own values from the start again."""
    return tensor.index_select(dim, torch.arange(size) % tensor.shape[dim])
