"""Copies that lie in memory as the original does: with its gaps, and as far from the beginning of their storage.

`Tensor.clone` keeps the order of the strides, but closes every gap: a copy of `x[:, ::2]` is contiguous, and code that reads
memory past the strides would be right on the copy alone.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_ALIGNED = 64  # elements: an offset keeps its remainder, and nobody copies what lies before it


def cloned(tensor: Tensor) -> Tensor:
    """A clone with the strides and gaps of the tensor; gradients flow back through it as through `Tensor.clone`.

    Gaps hold NaN (0 where there is no such number), so that code which ignores strides reads nobody else's values.

    >>> x = torch.arange(6.0).view(3, 2)[:, 1]
    >>> cloned(x).stride(), cloned(x).storage_offset(), x.clone().stride()
    ((2,), 1, (1,))
    """
    plain = tensor.clone()
    if _lies_as(plain, tensor) or not _can_be_copied(tensor):
        return plain
    offset, room = _room(tensor)
    if tensor.requires_grad:
        # Not one step of our own: a Function behind the outputs would be taken for one of the user's.
        placed = room.as_strided_scatter(plain, tensor.shape, tensor.stride(), offset)
        return placed.as_strided(tensor.shape, tensor.stride(), offset)
    # Not a view: PyTorch treats those differently when they are written into.
    return room.new_empty(0).set_(room.untyped_storage(), offset, tensor.shape, tensor.stride()).copy_(plain)


def filling(dtype: torch.dtype) -> float:
    """What gaps are filled with."""
    return math.nan if dtype.is_floating_point or dtype.is_complex else 0


def _lies_as(made: Tensor, tensor: Tensor) -> bool:
    if tensor.layout is not torch.strided or type(tensor) not in (Tensor, torch.nn.Parameter):
        return True
    return made.stride() == tensor.stride() and made.storage_offset() == tensor.storage_offset()


def _can_be_copied(tensor: Tensor) -> bool:
    """Elements of an expanded tensor share memory: a copy that is to be written into must not."""
    if tensor.is_conj() or tensor.is_neg() or not tensor.numel():
        return False
    reach = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size > 1):
        if stride < reach:
            return False
        reach = stride * (size - 1) + reach
    return True


def _room(tensor: Tensor) -> tuple[int, Tensor]:
    """The offset of the copy, and the flat memory that it lies in."""
    offset = int(tensor.storage_offset())
    offset = min(offset, _ALIGNED + offset % _ALIGNED)
    last = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape))
    return offset, torch.full((offset + last + 1,), filling(tensor.dtype), dtype=tensor.dtype, device=tensor.device)
