"""A free size of an example, and the arguments with that size at another value."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab.explore.drawing import redrawn, resampled
from gradsmith.lab.subject.arguments import Arguments


@dataclass(frozen=True)
class Size:
    """One free size of the example: everything that has to be resized with it."""

    value: int  # in the example
    dims: tuple[tuple[int, int, int], ...]  # (position of the leaf, dim, times): that dimension is times * size
    numbers: tuple[tuple[int, int], ...] = ()  # (flat position, times): Python ints that state times * size
    multiple_of: int = 1  # forward needs it divisible
    least: int = 1
    # "together": torch could not tell; "broadcast": 1, or what it is broadcast against; "parted": no smaller than another
    learned: str = "relations"
    ends: tuple[int, ...] = ()  # positions of integer tensors that end at it: offsets
    beside: tuple[int, int] | None = (
        None  # "parted": the (position, dim) that it is no smaller than, and equals in the example
    )
    own: bool = False  # filled with numbers of the example: forward refuses others


def resized(arguments: Arguments, size: Size, to: int, seed: int) -> Arguments:
    """The arguments with this size at another value: values of the same structure, indices inside what they point into."""
    generator = torch.Generator().manual_seed(seed)
    shapes: dict[int, list[int]] = {x.position: list(x.tensor.shape) for x in arguments.leaves}
    for position, dim, times in size.dims:
        shapes[position][dim] = times * to
    lengths = {times * size.value: times * to for _, _, times in size.dims}
    made: dict[int, Tensor] = {}  # by the tensor: one that is passed twice stays one
    for leaf in arguments.leaves:
        if id(leaf.tensor) in made:
            continue
        tensor, shape = leaf.tensor.detach(), shapes[leaf.position]
        changed = tensor
        if list(tensor.shape) != shape:
            kept = leaf.domains if leaf.domains is not None else ()
            if size.own and tensor.is_floating_point() and not kept:
                changed = resampled(tensor, shape, generator)
            else:
                changed = redrawn(tensor, shape, generator, differentiable=leaf.differentiable, known=leaf.domains)
        if leaf.position in size.ends:
            changed = _ending(changed, to)
        elif not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool:
            changed = _pointing(tensor, changed, lengths)
        made[id(leaf.tensor)] = leaf.tensor if changed is tensor else changed.requires_grad_(leaf.differentiable)
    tensors = {leaf.position: made[id(leaf.tensor)] for leaf in arguments.leaves}
    found = arguments.replaced(tensors)
    for position, times in size.numbers:
        found.flat[position] = times * to
    return found


def _pointing(before: Tensor, changed: Tensor, lengths: dict[int, int]) -> Tensor:
    """Indices into a dimension that shrank stay inside it. Where they cannot, that size cannot be had: PyTorch itself
    reads beyond the end of a tensor for some of them."""
    pointing = before[before >= 0]
    most, least = (int(pointing.max()), int(pointing.min())) if pointing.numel() else (-1, 0)
    old = min((n for n in lengths if n > most), default=None)
    if old is None or not changed.numel() or int(changed.max()) < lengths[old]:
        return changed
    if lengths[old] <= least:
        raise ValueError(f"indices from {least} to {most} do not fit into size {lengths[old]}")
    # None below the least that points at something: 0 may be a blank, or padding.
    return torch.where(changed >= lengths[old], least + (changed - least) % (lengths[old] - least), changed)


def _ending(offsets: Tensor, to: int) -> Tensor:
    found = offsets.clamp(max=to)
    found[-1] = to
    return found


def offsets(arguments: Arguments, size: Size) -> tuple[int, ...]:
    """Positions of integer tensors that rise from 0 to this size, and are not resized with it."""
    resized = {position for position, _, _ in size.dims}
    return tuple(
        leaf.position
        for leaf in arguments.leaves
        if leaf.position not in resized and _rises(leaf.tensor) and int(leaf.tensor[-1]) == size.value
    )


def _rises(tensor: Tensor) -> bool:
    plain = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
    return (
        plain and tensor.ndim == 1 and tensor.numel() > 1 and int(tensor[0]) == 0 and bool((tensor.diff() >= 0).all())
    )
