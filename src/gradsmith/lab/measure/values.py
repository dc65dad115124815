"""The numbers of a tensor, whatever type they are kept in: torch stores float8 and others, and does not compute in them."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from gradsmith.lab.pieces import numbers_of, pieces


@cache
def computable(dtype: torch.dtype) -> bool:
    """Whether torch computes in this type; float8 and others are for keeping only."""
    try:
        torch.zeros(1, dtype=dtype).isfinite().all()
        torch.zeros(1, dtype=dtype).sum()
    except (NotImplementedError, RuntimeError):
        return False
    return True


def widened(tensor: Tensor) -> Tensor:
    """The same numbers in a type that can be computed in."""
    return tensor if computable(tensor.dtype) or not tensor.is_floating_point() else tensor.float()


def finite(tensor: Tensor) -> bool:
    return all(bool(torch.isfinite(widened(piece)).all()) for (piece,) in pieces(tensor.detach()))


def unchanged(before: Tensor, after: Tensor) -> bool:
    """Whether these are the same numbers, NaN being the same as NaN."""
    if before.shape != after.shape:
        return False
    return all(_same_numbers(widened(a), widened(b)) for a, b in pieces(before.detach(), after.detach()))


def _same_numbers(before: Tensor, after: Tensor) -> bool:
    if before.is_floating_point() or before.is_complex():
        return torch.equal(numbers_of(before).nan_to_num(), numbers_of(after).nan_to_num())
    return torch.equal(before, after)
