"""Values of the same structure at another shape (a stand-in: the file of this name on main replaces it)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def redrawn(tensor: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """The tensor repeated or cut to this shape; floating values jittered by up to 15 %."""
    plain = tensor.detach()
    for dim, n in enumerate(shape):
        plain = plain.index_select(dim, torch.arange(n, device=plain.device) % plain.shape[dim])
    if not plain.is_floating_point() and not plain.is_complex():
        return plain.clone()
    noise = torch.rand(plain.shape, generator=generator, dtype=torch.float64).to(plain.device)
    return plain * (1 + 0.3 * (noise - 0.5)).to(plain.real.dtype if plain.is_complex() else plain.dtype)
