"""The same values in other memory: transposed, strided, offset, expanded.

Every strided tensor lives inside a buffer that is filled with NaN (0 where there is no such number), so that a kernel which
ignores strides reads no number and not somebody else's memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsmith.lab.subject.strides import filling


def layouts(tensor: Tensor) -> dict[str, Tensor]:
    """The tensor in every layout that its shape allows, by the name a message uses."""
    plain = tensor.detach()
    found: dict[str, Tensor] = {}
    if plain.numel() < 2:
        return found
    if plain.ndim >= 2:
        found["transposed"] = _permuted(plain, (*range(plain.ndim - 2), plain.ndim - 1, plain.ndim - 2))
        found["a slice of a torch.cat"] = _cat_slice(plain)
    found["every other element of a larger tensor"] = _strided(plain, -1)
    found["a slice with a storage offset"] = _offset(plain)
    if plain.ndim >= 2:
        found["every other row of a larger tensor"] = _strided(plain, 0)
    if plain.ndim >= 3:
        found["permuted, with its first dimension last in memory"] = _permuted(plain, (*range(1, plain.ndim), 0))
    return {name: made for name, made in found.items() if made.stride() != plain.stride() or made.storage_offset()}


def expanded_ones(tensor: Tensor) -> Tensor:
    """Ones with stride 0, as `.sum().backward()` hands them to backward."""
    return torch.ones((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)


def _filled(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return torch.full(shape, filling(like.dtype), dtype=like.dtype, device=like.device)


def _permuted(plain: Tensor, order: tuple[int, ...]) -> Tensor:
    """The dimensions lie in memory in this order."""
    back = [order.index(d) for d in range(plain.ndim)]
    return plain.permute(order).clone(memory_format=torch.contiguous_format).permute(back)


def _strided(plain: Tensor, dim: int) -> Tensor:
    """Every other element along a dimension."""
    shape = list(plain.shape)
    shape[dim] = 2 * shape[dim] + 1
    view = _filled(tuple(shape), plain).transpose(dim, 0)[::2][: plain.shape[dim]].transpose(dim, 0)
    view.copy_(plain)
    return view


def _offset(plain: Tensor) -> Tensor:
    # An even offset: pairs of reals are read as complex numbers by operators of torch's own (view_as_complex).
    buffer = _filled((2 * plain.numel() + 4,), plain)
    view = buffer[4 : 4 + plain.numel()].view(plain.shape)
    view.copy_(plain)
    return view


def _cat_slice(plain: Tensor) -> Tensor:
    rows = _filled((*plain.shape[:-1], plain.shape[-1] + 4), plain)
    view = rows[..., 2 : 2 + plain.shape[-1]]
    view.copy_(plain)
    return view
