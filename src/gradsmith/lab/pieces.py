"""Large tensors, a piece at a time: what is computed from all their elements needs room for one piece only.

Differences of two tensors, their absolute values, or their numbers in double precision take one to four times the memory of the
tensor. Pieces are views, also of tensors whose elements do not lie side by side. A tensor of ordinary size is one piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

BLOCK = 1 << 22  # elements of a tensor from which memory counts


def pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The same part of each of these tensors, part after part; all at once where one is to be broadcast.

    >>> [a.shape for a, b in pieces(torch.ones(3, 2), torch.ones(3, 2))]
    [torch.Size([3, 2])]
    """
    first = tensors[0]
    if (
        first.numel() <= BLOCK
        or any(t.shape != first.shape for t in tensors)
        or not all(_divisible(t) for t in tensors)
    ):
        yield tensors
        return
    dim = max(range(first.dim()), key=lambda d: first.shape[d])
    length = max(1, first.shape[dim] * BLOCK // first.numel())
    for part in zip(*(t.split(length, dim) for t in tensors)):
        yield from pieces(*part)


def largest(tensor: Tensor) -> float:
    """The largest absolute value among the finite elements, 0 where there are none."""
    numbers = numbers_of(tensor.detach())
    return max((float(p.abs().nan_to_num(0, 0, 0).max()) for (p,) in pieces(numbers) if p.numel()), default=0.0)


def numbers_of(tensor: Tensor) -> Tensor:
    """What a sparse tensor holds, as a dense one; of few of its layouts can more be asked."""
    if tensor.layout in (torch.strided, torch.jagged):
        return tensor
    return tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()


def root_mean_square(tensor: Tensor) -> float:
    """Of the finite elements; 0 where there are none."""
    means, counts = [], []
    for (piece,) in pieces(tensor.detach()):
        finite = piece[torch.isfinite(piece)].abs().double()
        if finite.numel():
            means.append(float(finite.square().mean()))
            counts.append(finite.numel())
    return math.sqrt(math.fsum(m * n / sum(counts) for m, n in zip(means, counts)))


def norm_of_product(a: Tensor, b: Tensor) -> float:
    """The Euclidean norm of a * b, element by element."""
    return math.hypot(*(float(torch.linalg.vector_norm((p * q).abs().double())) for p, q in pieces(a, b)))


def _divisible(tensor: Tensor) -> bool:
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
