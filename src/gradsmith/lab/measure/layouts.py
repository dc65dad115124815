"""The same values in other memory: transposed, strided, offset, expanded.

Every strided tensor lives inside a NaN-filled buffer, so that a kernel which ignores strides reads NaN and not
somebody else's memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def layouts(tensor: Tensor) -> dict[str, Tensor]:
    """The tensor in every layout that its shape allows, by the name a message uses."""
    plain = tensor.detach()
    found: dict[str, Tensor] = {}
    if plain.numel() < 2:
        return found
    if plain.ndim >= 2:
        found["transposed"] = _transposed(plain)
        found["a slice of a torch.cat"] = _cat_slice(plain)
    found["every other element of a larger tensor"] = _strided(plain)
    found["a slice with a storage offset"] = _offset(plain)
    return {name: made for name, made in found.items() if made.stride() != plain.stride() or made.storage_offset()}


def expanded_ones(tensor: Tensor) -> Tensor:
    """Ones with stride 0, as `.sum().backward()` hands them to backward."""
    return torch.ones((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)


def _filled(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return torch.full(shape, math.nan, dtype=like.dtype, device=like.device)


def _transposed(plain: Tensor) -> Tensor:
    shape = (*plain.shape[:-2], plain.shape[-1], plain.shape[-2])
    return _filled(shape, plain).copy_(plain.transpose(-1, -2)).transpose(-1, -2)


def _strided(plain: Tensor) -> Tensor:
    buffer = _filled((*plain.shape[:-1], 2 * plain.shape[-1] + 1), plain)
    view = buffer[..., ::2][..., : plain.shape[-1]]
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
