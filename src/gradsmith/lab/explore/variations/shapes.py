"""Other sizes: learn which dimensions belong together, then set each group to 1, 2, a prime, an odd large size, and 0."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradsmith.lab.explore.questions import cuts, uneven
from gradsmith.lab.explore.variations.judging import Variation, refusal
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import recorded
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.foreign import foreign
from gradsmith.lab.subject.target import backward_of
from gradsmith.source.lexicon import speaks_of_sides
from gradsmith.source.loaded import text_of

_INDEX = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
_MOST_DIMENSIONS = 8  # of one size; more are resized only all together
_MOST_MULTIPLES = 3


@dataclass(frozen=True)
class Dimension:
    """One dimension of one tensor."""

    position: int
    dim: int


@dataclass(frozen=True)
class Multiple:
    """A dimension that is so many times as large as those of a group: height times width, four gates."""

    of: Dimension
    times: int


@dataclass(frozen=True)
class Group:
    """Dimensions of equal size that forward wants resized together, with the numbers that state the same size."""

    size: int
    members: tuple[Dimension, ...]
    numbers: tuple[int, ...] = ()
    shrinks: bool = True  # forward took it smaller, so the size is free and not built in (three channels, say)
    splits_square: bool = False  # another dimension of the same tensor had the same size
    multiples: tuple[Multiple, ...] = ()  # what has to grow and shrink with it


@once
def groups(lab: Lab) -> list[Group]:
    """Which dimensions belong together: equal sizes, resized one set at a time, keeping what forward accepts."""
    arguments = lab.precise[1]
    by_size: dict[int, list[Dimension]] = {}
    for leaf in arguments.leaves:
        if leaf.name.startswith("parameters["):
            continue  # the inside of a module states its sizes elsewhere, too
        for dim, size in enumerate(leaf.tensor.shape):
            if size > 1:
                by_size.setdefault(size, []).append(Dimension(leaf.position, dim))
    # A kernel that gets addresses does not reject tensors that no longer fit each other: it reads past their end.
    split = _together if foreign(lab) else _split
    return [g for size, dims in by_size.items() for g in split(lab, arguments, size, dims)]


def variations(lab: Lab) -> Iterator[Variation]:
    arguments = lab.precise[1]
    learned = groups(lab)
    even = cuts(lab.tape) and not uneven(lab.tape)
    for group in learned:
        if _only_a_prefix(lab, arguments, group) or not _grows(lab, arguments, group):
            continue
        for size in _sizes(group.size):
            variation = _variation(lab, arguments, group, size)
            if _repeats_indices(arguments, variation.arguments) or (even and _cut_unevenly(lab, variation.arguments)):
                continue
            yield variation
    if not foreign(lab) and (wider := _extra_dimension(arguments)):
        yield wider
    if lab.isolated and lab.empty:
        # A number that happens to equal the size (a bound of 3 beside 3 columns) may not follow it to 0.
        free = [group for group in learned if not group.numbers and not _points_into(arguments, group)]
        yield from (_emptied(lab, arguments, group) for group in free)


def _cut_unevenly(lab: Lab, arguments: Arguments) -> bool:
    return uneven(recorded(lab.precise[0], arguments, lab.settings.seed))


def resized(arguments: Arguments, group: Group, size: int) -> Arguments:
    """The arguments with this group of dimensions at another size: a prefix, or a repetition with other values."""
    tensors: dict[int, Tensor] = {}
    generator = torch.Generator().manual_seed(size)
    for leaf in arguments.leaves:
        dims = {m.dim: size for m in group.members if m.position == leaf.position}
        dims |= {m.of.dim: m.times * size for m in group.multiples if m.of.position == leaf.position}
        if dims:
            tensors[leaf.position] = _resized(leaf, dims, generator)
        elif not leaf.tensor.is_floating_point() and not leaf.tensor.is_complex():
            tensors[leaf.position] = _in_range(leaf.tensor, group.size, size)
    changed = arguments.replaced(tensors)
    for i in group.numbers:
        changed.flat[i] = size
    return changed


def _repeats_indices(before: Arguments, after: Arguments) -> bool:
    """Indices that were all different no longer are: that is a variation of its own (repeated-index)."""

    def distinct(tensor: Tensor) -> bool:
        return bool(tensor.unique().numel() == tensor.numel())

    return any(
        not a.tensor.is_floating_point()
        and not a.tensor.is_complex()
        and a.tensor.dtype != torch.bool
        and distinct(a.tensor)
        and not distinct(b.tensor)
        for a, b in zip(before.leaves, after.leaves)
    )


def _together(lab: Lab, arguments: Arguments, size: int, dims: list[Dimension]) -> list[Group]:
    """All dimensions of one size, or none."""
    found = _accepted(lab, arguments, size, tuple(dims), _stated(arguments, size))
    return [found] if found is not None else []


def _stated(arguments: Arguments, size: int) -> tuple[int, ...]:
    """Numbers among the arguments that state this size."""
    return tuple(
        i for i, v in enumerate(arguments.flat) if isinstance(v, int) and not isinstance(v, bool) and v == size
    )


def _split(lab: Lab, arguments: Arguments, size: int, dims: list[Dimension]) -> list[Group]:
    """Singles, then pairs, then all that is left: the smallest sets that forward takes at another size."""
    stated = _stated(arguments, size)
    found: list[Group] = []
    left = list(dims)
    if len(left) <= _MOST_DIMENSIONS:
        for count in (1, 2):
            for members in itertools.combinations(list(left), count):
                if all(m in left for m in members) and (group := _accepted(lab, arguments, size, members, stated)):
                    found.append(group)
                    left = [d for d in left if d not in members]
    if left and (group := _accepted(lab, arguments, size, tuple(left), stated)):
        found.append(group)
    whole = Group(size, tuple(dims), stated)
    if any(g.splits_square for g in found) and _takes(lab, arguments, whole, size - 1):
        found.append(whole)
    return found


def _accepted(
    lab: Lab, arguments: Arguments, size: int, members: tuple[Dimension, ...], stated: tuple[int, ...]
) -> Group | None:
    tensors = {x.position: x.tensor for x in arguments.leaves}
    square = any(
        other == size and Dimension(m.position, d) not in members
        for m in members
        for d, other in enumerate(tensors[m.position].shape)
    )
    # With the numbers first: `n` beside a tensor of n rows states the same size, and has to follow it.
    for numbers, multiples in dict.fromkeys(((stated, ()), ((), ()), *(((), m) for m in _multiples(tensors, size)))):
        for other in (size - 1, size + 1) if size > 2 else (size + 1,):
            group = Group(size, members, numbers, other < size or size == 2, square, multiples)
            if _takes(lab, arguments, group, other):
                return group
    return None


def _multiples(tensors: dict[int, Tensor], size: int) -> list[tuple[Multiple, ...]]:
    """Dimensions that may be a product with this size: all of them at once, and each alone."""
    found = [
        Multiple(Dimension(position, dim), length // size)
        for position, tensor in tensors.items()
        for dim, length in enumerate(tensor.shape)
        if size > 1 and length > size and length % size == 0
    ]
    alone = [(m,) for m in found] if 1 < len(found) <= _MOST_MULTIPLES else []
    return [tuple(found), *alone] if found else []


def _takes(lab: Lab, arguments: Arguments, group: Group, size: int) -> bool:
    return not refusal(lab.precise[0], resized(arguments, group, size), lab.settings.seed)


def _sizes(size: int) -> list[int]:
    prime = 7 if size != 7 else 5
    wanted = [1, 2, prime] if size < 16 else [1, 2, prime, 33]
    return [n for n in wanted if n != size]


def _variation(lab: Lab, arguments: Arguments, group: Group, size: int) -> Variation:
    changed = resized(arguments, group, size)
    names = {leaf.position: leaf.name for leaf in arguments.leaves}
    shapes = {leaf.position: tuple(leaf.tensor.shape) for leaf in changed.leaves}
    touched = list(dict.fromkeys(m.position for m in (*group.members, *(m.of for m in group.multiples))))
    words = ", ".join(f"'{names[p]}' of shape {shapes[p]}" for p in touched[:3])
    if group.numbers:
        words += f" and {size} for the number {group.size}"
    square = group.splits_square and not _is_an_image(lab, arguments, group)
    doubtful = (
        square
        or _splits_twins(arguments, group)
        or (size > group.size and not group.shrinks)
        or _are_coordinates(lab, arguments, group)
    )
    return Variation(f"with {words}", changed, "shapes", names[touched[0]], doubtful)


def _is_an_image(lab: Lab, arguments: Arguments, group: Group) -> bool:
    """Behind batch and channels, in code that tells height from width: oblong images are meant, whatever the example."""
    ranks = {leaf.position: leaf.tensor.ndim for leaf in arguments.leaves}
    behind = all(m.dim >= 2 and ranks[m.position] in (4, 5) for m in group.members)
    return behind and speaks_of_sides(text_of(lab.target.function or lab.target.original))


def _are_coordinates(lab: Lab, arguments: Arguments, group: Group) -> bool:
    """Points in space, or boxes: the last dimension is 3 or 4, and backward says so: `expand(-1, -1, 3)`."""
    if group.size not in (3, 4) or lab.target.function is None:
        return False
    ranks = {leaf.position: leaf.tensor.ndim for leaf in arguments.leaves}
    last = any(m.dim == ranks[m.position] - 1 > 0 for m in group.members)
    written = rf"[,\[]\s*{group.size}\s*[,)\]]"
    return last and bool(re.search(written, text_of(backward_of(lab.target.function))))


def _splits_twins(arguments: Arguments, group: Group) -> bool:
    """Two tensors of one shape, or of one batch, no longer are: that forward takes them may be an accident.

    Broadcasting takes other shapes; gather takes an index of fewer rows than there are.
    """
    shapes = {leaf.position: leaf.tensor.shape for leaf in arguments.leaves}
    return any(
        other != m.position
        and (shape == shapes[m.position] or (m.dim == 0 and len(shape) > 1 and shape[0] == shapes[m.position][0]))
        and Dimension(other, m.dim) not in group.members
        for m in group.members
        for other, shape in shapes.items()
    )


def _grows(lab: Lab, arguments: Arguments, group: Group) -> bool:
    """What can only get smaller is held by another size: a half of 1 is broadcast where a half of 2 was meant."""
    return any(_takes(lab, arguments, group, size) for size in (group.size + 1, 2 * group.size, 7))


def _only_a_prefix(lab: Lab, arguments: Arguments, group: Group) -> bool:
    """The rows of a tensor and of the indices into it are one batch, of which gather also takes a part.

    Nobody has more scores than labels. What is free of the other (a table beside the indices into it) can both grow and
    shrink on its own; a part can only do one of them.
    """
    tensors = {leaf.position: leaf.tensor for leaf in arguments.leaves}
    split = any(
        m.dim == 0
        and other.ndim > 0
        and other.shape[0] == group.size
        and Dimension(position, 0) not in group.members
        and _is_index(other) != _is_index(tensors[m.position])
        for m in group.members
        for position, other in tensors.items()
    )
    return split and not all(_takes(lab, arguments, group, group.size + step) for step in (-1, 1))


def _is_index(tensor: Tensor) -> bool:
    return tensor.dtype in _INDEX


def _emptied(lab: Lab, arguments: Arguments, group: Group) -> Variation:
    """The group at size 0: the last batch of a filter, an expert that gets no tokens. Foreign code may crash on it."""
    found = _variation(lab, arguments, group, 0)
    return replace(found, doubtful=True, empty=True)


def _points_into(arguments: Arguments, group: Group) -> bool:
    """Whether some index points into this group of dimensions: into nothing, nothing can point."""
    resized = {m.position for m in group.members}
    others = [x.tensor for x in arguments.leaves if x.position not in resized and x.tensor.dtype in _INDEX]
    return any(t.numel() and int(t.min()) >= 0 and int(t.max()) < group.size for t in others)


def _extra_dimension(arguments: Arguments) -> Variation | None:
    """One more leading dimension, on the first tensor and whatever has its shape."""
    if not arguments.differentiable:
        return None
    first = arguments.differentiable[0]
    # Four dimensions have a meaning each (batch, channels, height, width): a fifth is nobody's mistake to forget.
    if not 0 < first.tensor.ndim < 4 or first.name.startswith("parameters["):
        return None
    generator = torch.Generator().manual_seed(3)
    same = [x for x in arguments.leaves if x.tensor.shape == first.tensor.shape]
    tensors = {x.position: _stacked(x, generator) for x in same}
    words = f"with one more leading dimension, '{first.name}' of shape {tuple(tensors[first.position].shape)}"
    return Variation(words, arguments.replaced(tensors), "shapes", first.name, doubtful=True)


def _stacked(leaf: Leaf, generator: torch.Generator) -> Tensor:
    plain = leaf.tensor.detach()
    if not leaf.differentiable:
        return torch.stack([plain, plain])
    # One factor for all elements: what was symmetric or positive definite stays so.
    return torch.stack([plain, plain * 1.15 if _is_symmetric(plain) else _jittered(plain, generator)])


def _resized(leaf: Leaf, dims: Mapping[int, int], generator: torch.Generator) -> Tensor:
    tensor = leaf.tensor.detach()
    old, size = next((tensor.shape[dim], n) for dim, n in dims.items())
    for dim, n in dims.items():
        tensor = tensor.index_select(dim, torch.arange(n, device=tensor.device) % tensor.shape[dim])
    if size > old and leaf.differentiable:
        # Repeated rows would be ties; a factor near 1 keeps sign, zeros and the order of magnitude.
        tensor = _jittered(tensor, generator, symmetric=_is_symmetric(leaf.tensor.detach()))
        if _is_symmetric(tensor) and bool((tensor.diagonal(dim1=-2, dim2=-1) > 0).all()):
            # Repeated rows and columns are singular: what was positive definite stays so.
            tensor = tensor + tensor.abs().amax() * torch.eye(
                tensor.shape[-1], dtype=tensor.dtype, device=tensor.device
            )
    if not tensor.is_floating_point() and not tensor.is_complex():
        tensor = _in_range(tensor, old, size)
    elif _is_identity(leaf.tensor.detach()) and tensor.shape[-1] == tensor.shape[-2]:
        tensor = torch.eye(tensor.shape[-1], dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)
    return tensor.contiguous()


def _is_symmetric(tensor: Tensor) -> bool:
    """A covariance, a Laplacian: its Function may rely on that, and another size is no reason to break it."""
    square = tensor.is_floating_point() and tensor.ndim > 1 and tensor.shape[-1] == tensor.shape[-2] > 1
    return square and torch.equal(tensor, tensor.mT)


def _is_identity(tensor: Tensor) -> bool:
    return _is_symmetric(tensor) and bool((tensor == torch.eye(tensor.shape[-1], device=tensor.device)).all())


def _jittered(tensor: Tensor, generator: torch.Generator, *, symmetric: bool = False) -> Tensor:
    if bool((tensor == tensor.reshape(-1)[:1]).all()):
        return tensor  # all ones, all zeros: whether other values are right is another question (value-dependent)
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.device)
    if symmetric and tensor.shape[-1] == tensor.shape[-2]:
        noise = (noise + noise.mT) / 2
    return tensor * (1 + 0.3 * (noise - 0.5)).to(tensor.real.dtype if tensor.is_complex() else tensor.dtype)


def _in_range(tensor: Tensor, old: int, size: int) -> Tensor:
    """Indices into a dimension that shrank stay inside it."""
    plain = tensor.detach()
    if plain.dtype == torch.bool or not plain.numel() or size >= old:
        return plain
    if int(plain.min()) >= 0 and size <= int(plain.max()) < old:
        return plain % size
    return plain
