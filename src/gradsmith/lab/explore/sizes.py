"""The free sizes of an example: which dimensions can be resized together, and the arguments at another size.

PyTorch says which sizes forward compares (`size_relations.py`); one real forward at another size confirms each answer.
Where it cannot tell, because forward leaves PyTorch, all equal sizes move together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradsmith.lab.explore.domains import redrawn
from gradsmith.lab.explore.size_relations import Relations, divisors, traced, untraced
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import foreign

_MOST_OPERATIONS = 300  # of a forward that PyTorch is asked about: one takes a millisecond on stand-ins
_MOST_ONES = 8  # dimensions of size 1 that are grown one by one


@dataclass(frozen=True)
class Size:
    """One free size of the example: everything that has to be resized with it."""

    value: int  # in the example
    dims: tuple[tuple[int, int, int], ...]  # (position of the leaf, dim, times): that dimension is times * size
    numbers: tuple[tuple[int, int], ...] = ()  # (flat position, times): Python ints that state times * size
    multiple_of: int = 1  # forward needs it divisible
    least: int = 1
    learned: str = "relations"  # "together": torch could not tell; "broadcast": 1, or what it is broadcast against
    ends: tuple[int, ...] = ()  # positions of integer tensors that end at it: offsets


@once
def sizes(lab: Lab) -> list[Size]:
    """Every free size, each confirmed by one real forward at another size."""
    given = lab.precise[1]
    if foreign(lab):
        # A kernel that gets addresses does not reject tensors that no longer fit: it reads past their end.
        return [s for s in _confirmed(lab, given, untraced(given), set()) if s.value > 1]
    grown, ones = _grown(lab, given)
    relations = traced(lab.precise[0], grown, lab.settings.seed) if _is_short(lab) else None
    if relations is None:
        return _confirmed(lab, given, untraced(given), set())
    found = _confirmed(lab, given, relations, ones)
    return found + _broadcast(lab, given, found)


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
        changed = redrawn(tensor, shape, generator) if list(tensor.shape) != shape else tensor
        if leaf.position in size.ends:
            changed = _ending(changed, to)
        elif not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool:
            changed = _pointing(tensor, changed, lengths)
        made[id(leaf.tensor)] = leaf.tensor if changed is tensor else changed
    tensors = {leaf.position: made[id(leaf.tensor)] for leaf in arguments.leaves}
    found = arguments.replaced(tensors)
    for position, times in size.numbers:
        found.flat[position] = times * to
    return found


def _pointing(before: Tensor, changed: Tensor, lengths: dict[int, int]) -> Tensor:
    """Indices into a dimension that shrank stay inside it."""
    most = int(before.max()) if before.numel() else -1
    old = min((n for n in lengths if n > most), default=None)
    if old is None or not lengths[old] or not changed.numel() or int(changed.max()) < lengths[old]:
        return changed
    return torch.where(changed >= lengths[old], changed % lengths[old], changed)


def _ending(offsets: Tensor, to: int) -> Tensor:
    found = offsets.clamp(max=to)
    found[-1] = to
    return found


def _offsets(arguments: Arguments, size: Size) -> tuple[int, ...]:
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


def _is_short(lab: Lab) -> bool:
    return lab.tape.failed is not None or sum(1 for _ in lab.tape.aten()) <= _MOST_OPERATIONS


@dataclass(frozen=True)
class _Hypothesis:
    """Sizes that may be the ones to move together. `shrinks`: it has to be taken smaller as well, to be believed."""

    group: frozenset[str]
    learned: str
    shrinks: bool = False


def _confirmed(lab: Lab, arguments: Arguments, relations: Relations, ones: set[tuple[int, int]]) -> list[Size]:
    found: list[Size] = []
    covered: set[str] = set()
    for name in relations.dimensions:
        if name in covered:
            continue
        for hypothesis in _hypotheses(relations, name, covered):
            size = _size(relations, hypothesis, ones)
            confirmed = _taken(lab, arguments, size, shrinks=hypothesis.shrinks) if size is not None else None
            if confirmed is not None:
                found.append(confirmed)
                covered |= hypothesis.group
                break
    return found


def _hypotheses(relations: Relations, name: str, covered: set[str]) -> list[_Hypothesis]:
    """The likeliest first; none where the size follows something that cannot move."""
    value = relations.values[name]
    equal = {n for n, v in relations.values.items() if v == value and n not in relations.fixed and n not in covered}
    numbers = {n for n in equal if relations.places[n][0].dim is None}
    if not relations.traced:
        multiples = {n for n in relations.dimensions if value > 1 and relations.values[n] % value == 0}
        tried = [equal, equal - numbers, multiples | equal, (multiples | equal) - numbers]
        return [_Hypothesis(group, "together") for group in dict.fromkeys(map(frozenset, tried))]
    if name not in relations.pinned and relations.closed({name}) is None:
        return []
    tried_with: list[tuple[set[str], str, bool]] = [
        # What is only compared with a number may be free, if it can grow and shrink; or all that were are one size.
        ({name}, "relations", name in relations.pinned),
        ({name} | (equal & relations.pinned), "together", False),
        (equal, "together", False),
        (equal - numbers, "together", False),
    ]
    closed = [(relations.closed(group), learned, shrinks) for group, learned, shrinks in tried_with]
    return [_Hypothesis(group, learned, shrinks) for group, learned, shrinks in closed if group is not None]


def _size(relations: Relations, hypothesis: _Hypothesis, ones: set[tuple[int, int]]) -> Size | None:
    """The group as a Size; `ones` are dimensions that were grown before PyTorch was asked, and are 1 in the example."""
    group, learned = hypothesis.group, hypothesis.learned
    base = relations.base(group)
    places = [(place, relations.values[name] // base) for name in sorted(group) for place in relations.places[name]]
    dims = tuple(sorted((p.position, p.dim, times) for p, times in places if p.dim is not None))
    numbers = tuple(sorted((p.position, times) for p, times in places if p.dim is None))
    grown = [(position, dim) in ones for position, dim, _ in dims]
    if any(grown):
        alike = all(grown) and not numbers and all(times == 1 for _, _, times in dims)
        return Size(1, dims, learned=learned) if alike else None
    return Size(base, dims, numbers, relations.step(group), relations.least(group), learned)


def _taken(lab: Lab, arguments: Arguments, size: Size, *, shrinks: bool = False) -> Size | None:
    """The size as a real forward confirms it: one step larger, else by a larger step that divides it, else twice."""
    if (ends := _offsets(arguments, size)) and not size.ends:
        following = _taken(lab, arguments, replace(size, ends=ends), shrinks=shrinks)
        if following is not None:
            return following
    larger = [d for d in divisors(size.value) if d % size.multiple_of == 0]
    for step in dict.fromkeys((*larger[:2], size.value)):
        if not _takes(lab, arguments, size, size.value + step):
            continue
        if shrinks and size.value > step and not _takes(lab, arguments, size, size.value - step):
            return None
        taken = replace(size, multiple_of=step)
        # A bound may be PyTorch's own (another kernel from 16 samples on), or the user's.
        smallest = taken.least > step and _takes(lab, arguments, taken, step)
        return replace(taken, least=step if smallest or taken.least <= step else taken.least)
    return None


def _takes(lab: Lab, arguments: Arguments, size: Size, to: int) -> bool:
    try:
        forward(lab.precise[0], resized(arguments, size, to, lab.settings.seed), seed=lab.settings.seed)
    except Exception:  # the user's forward, on sizes that it may not allow
        return False
    return True


def _grown(lab: Lab, arguments: Arguments) -> tuple[Arguments, set[tuple[int, int]]]:
    """The arguments with every dimension of size 1 that forward lets grow at one other size, and which these are.

    At 1 everything broadcasts, and PyTorch cannot say what belongs together. All at once is tried first: a batch of 1 is
    one in every input.
    """
    ones = _ones(arguments)
    present = {n for leaf in arguments.leaves for n in leaf.tensor.shape}
    to = next(n for n in range(2, len(present) + 3) if n not in present)

    def at(dims: list[tuple[int, int]]) -> Size:
        return Size(1, tuple((position, dim, 1) for position, dim in dims))

    if not ones or _takes(lab, arguments, at(ones), to):
        kept = ones
    else:
        kept = []
        for one in ones[:_MOST_ONES]:
            if _takes(lab, arguments, at([*kept, one]), to):
                kept.append(one)
    return (resized(arguments, at(kept), to, lab.settings.seed) if kept else arguments), set(kept)


def _broadcast(lab: Lab, arguments: Arguments, found: list[Size]) -> list[Size]:
    """Dimensions of size 1 that can only become what they are broadcast against."""
    free = {(position, dim) for size in found for position, dim, _ in size.dims}
    others = sorted({n for leaf in arguments.leaves for n in leaf.tensor.shape if n > 1})
    more = []
    for position, dim in [one for one in _ones(arguments) if one not in free][:_MOST_ONES]:
        size = Size(1, ((position, dim, 1),), learned="broadcast")
        to = next((n for n in others if _takes(lab, arguments, size, n)), None)
        if to is not None:
            more.append(replace(size, multiple_of=to, least=to))
    return more


def _ones(arguments: Arguments) -> list[tuple[int, int]]:
    return [
        (leaf.position, dim)
        for leaf in arguments.leaves
        if not leaf.name.startswith("parameters[")
        for dim, n in enumerate(leaf.tensor.shape)
        if n == 1
    ]
