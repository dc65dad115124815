"""Tensors and the table of domains: in which of them a tensor lies, other values of the same structure, values outside of one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradsmith.lab.explore.domains import DISCRETE, ELEMENTS, WITHOUT_GRADIENT, Domain, rows

UNLIKELY = 1e-3  # a structure less likely than this is no accident


def domains_of(tensor: Tensor, *, differentiable: bool = True, known: Sequence[str] | None = None) -> list[Domain]:
    """The domains in which this tensor lies and not by accident, the most special first.

    A constant is poverty, not structure: ones and zeros are not "symmetric". Nobody differentiates with respect to a
    mask: zeros and ones are a domain of inputs without a gradient only. Of a tensor that was made from the user's example,
    `known` are the domains of that example: twelve positive numbers are no accident, and four of them do not become one.
    """
    if not tensor.is_floating_point() or not bool(torch.isfinite(tensor).all()):
        return []
    x = tensor.detach().double()
    if known is not None:
        return [d for d in rows(x.ndim) if d.name in known and (not x.numel() or d.contains(x) or not d.tells(x))]
    if tensor.numel() < 2:
        return []
    possible = [d for d in rows(x.ndim) if not (differentiable and d.name.partition(" ")[0] in WITHOUT_GRADIENT)]
    held = [d for d in possible if d.contains(x) and d.chance(x) < UNLIKELY]
    # Of a few different numbers, some add up to 0 or are the same in both directions by accident.
    discrete = any(d.name in DISCRETE for d in held)
    return [d for d in held if not discrete or d.name.partition(" ")[0] in WITHOUT_GRADIENT or d in ELEMENTS]


def every_domain(tensor: Tensor, *, differentiable: bool = True) -> list[Domain]:
    """All domains that a tensor of this shape could come from, the most special first."""
    possible = [d for d in rows(tensor.ndim) if not (differentiable and d.name.partition(" ")[0] in WITHOUT_GRADIENT)]
    drawn = generic(tensor, tensor.shape, torch.Generator().manual_seed(0))
    return [d for d in possible if d.contains(d.project(drawn))]


def drawn_from(domain: Domain, tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Values from this domain in the shape and type of the tensor."""
    return domain.project(generic(tensor, tensor.shape, generator)).to(tensor)


def redrawn(
    tensor: Tensor,
    shape: Sequence[int],
    generator: torch.Generator,
    *,
    differentiable: bool = True,
    known: Sequence[str] | None = None,
) -> Tensor:
    """Other values of the same structure, in this shape."""
    if tensor.dtype == torch.bool:
        return _mask(tensor, shape, generator)
    if not tensor.is_floating_point() and not tensor.is_complex():
        return _ids(tensor, shape, generator)
    if tensor.is_complex():
        parts = [redrawn(p, shape, generator) for p in (tensor.real, tensor.imag)]
        return torch.complex(*parts).to(tensor.dtype)
    held = domains_of(tensor, differentiable=differentiable, known=known)
    return within(held, generic(tensor, shape, generator)).to(tensor)


def resampled(tensor: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """The tensor's own numbers, in other places and other quantities, for a forward that takes no others.

    Four positive numbers may be an accident; that forward refuses what is not positive, it says only when it is asked.
    """
    count, flat = math.prod(shape), tensor.detach().reshape(-1)
    if not flat.numel():
        return tensor.new_zeros(tuple(shape))
    chosen = torch.randint(flat.numel(), (count,), generator=generator).to(flat.device)
    wider = 1 + 0.1 * torch.rand(count, generator=generator, dtype=torch.float64).to(flat.device)  # no ties
    return (flat[chosen] * wider).to(tensor.dtype).reshape(tuple(shape))


def broken(
    tensor: Tensor, domain: Domain, held: Sequence[Domain], generator: torch.Generator, reach: float = 1.0
) -> Tensor | None:
    """Values outside this domain which keep what else of `held` holds of the tensor; None where it cannot be left alone.

    `reach` is how far from the tensor's own values they lie: 1 for others altogether."""
    kept = [d for d in held if domain.name not in (d.name, *_closure(d, held))]
    drawn = generic(tensor, tensor.shape, generator)
    # Out of an interval it takes larger numbers, and to both signs numbers around 0.
    for other in (drawn, drawn - drawn.mean(), 3 * drawn, 30 * drawn):
        x = within(kept, between(tensor, other, reach))
        if not domain.contains(x):
            return x.to(tensor)
    return None


def between(tensor: Tensor, other: Tensor, reach: float) -> Tensor:
    """`other` at reach 1, and the nearer to the tensor the smaller reach is."""
    return other if reach == 1.0 else torch.lerp(tensor.detach().double(), other.double(), reach)


def within(held: Sequence[Domain], x: Tensor) -> Tensor:
    """These values put into all of the domains, as far as they agree: the most special one has the last word."""
    x = x.double()
    for domain in reversed(held):
        x = x if domain.contains(x) else domain.project(x)
    lost = [d for d in held if not d.contains(x)]
    if lost:
        again = x
        for domain in (*(d for d in reversed(held) if d not in lost), *reversed(lost)):
            again = domain.project(again)
        if sum(not d.contains(again) for d in held) < len(lost):
            return again
    return x


def generic(tensor: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """A draw as far from 0 and as wide as the tensor; of a single number, one of the same sign and magnitude."""
    x = tensor.detach().double()
    x = x[torch.isfinite(x)]
    drawn = torch.randn(tuple(shape), generator=generator, dtype=torch.float64).to(tensor.device)
    if x.numel() == 1:
        value = float(x)
        return torch.full_like(drawn, value) * (1 + 0.5 * drawn.tanh()) if value else 0.5 * drawn
    if not x.numel():
        return drawn
    middle, width = float(x.mean()), float(x.std())
    if width <= 1e-9 * abs(middle) or width == 0:
        width = 0.5 * abs(middle) or 0.5
    return middle + width * drawn


def _closure(domain: Domain, among: Sequence[Domain]) -> set[str]:
    """The names of all domains that this one lies in."""
    found: set[str] = set()
    left = list(domain.special_of)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [n for d in among if d.name == name for n in d.special_of]
    return found


def _mask(tensor: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """A mask of the same density; all True stays all True, and rows with something in them stay so."""
    share = float(tensor.double().mean()) if tensor.numel() else 1.0
    drawn = torch.rand(tuple(shape), generator=generator).to(tensor.device)
    mask = drawn < share
    if tensor.ndim and tensor.numel() and bool(tensor.any(-1).all()) and mask.numel():
        mask = mask | (drawn == drawn.amin(-1, keepdim=True))
    return mask


def _ids(tensor: Tensor, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Whole numbers that the example has, in other places; a permutation stays one, what is sorted or unique stays so.

    None between them is taken: 1 and -1 may be labels, and 0 none.
    """
    flat = tensor.reshape(-1)
    if not flat.numel():
        return tensor.new_zeros(tuple(shape))
    count = math.prod(shape)
    low, high = int(flat.min()), int(flat.max())
    unique = flat.unique().numel() == flat.numel()
    if unique and low == 0 and high == flat.numel() - 1 and count != flat.numel():
        high = count - 1  # a permutation of as many as there are
    if unique and high - low + 1 >= count:
        drawn = torch.randperm(high - low + 1, generator=generator)[:count] + low
    else:
        drawn = flat.cpu()[torch.randint(flat.numel(), (count,), generator=generator)]
    found = drawn.reshape(tuple(shape)).to(tensor)
    if tensor.ndim and tensor.shape[-1] > 1 and found.ndim and bool((tensor.diff(dim=-1) >= 0).all()):
        found = found.sort(-1).values
    several = tensor.ndim == 1 and flat.numel() > 1 and found.numel() > 0
    if several and low == 0 and int(flat[0]) == 0 and bool((tensor.diff() >= 0).all()):
        # Sorted from 0 up: offsets keep their ends.
        found[0], found[-1] = 0, high
    return found
