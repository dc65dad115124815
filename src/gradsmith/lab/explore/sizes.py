"""The free sizes of an example: which dimensions can be resized together.

PyTorch says which sizes forward compares (`size_relations.py`); one real forward at another size confirms each answer.
Where it cannot tell, because forward leaves PyTorch, all equal sizes move together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gradsmith.lab.explore.resizing import Size, offsets, resized
from gradsmith.lab.explore.size_relations import Relations, divisors, traced, untraced
from gradsmith.lab.explore.tape import NoEnd, stopped_after
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import gives_addresses
from gradsmith.lab.subject.target import Target

__all__ = ["Size", "free_sizes", "parted_sizes", "resized", "sizes"]

_MOST_OPERATIONS = 300  # of a forward that PyTorch is asked about: one takes a millisecond on stand-ins
_MOST_ONES = 8  # dimensions of size 1 that are grown one by one


@once
def sizes(lab: Lab) -> list[Size]:
    """Every free size, each confirmed by one real forward at another size."""
    return [size for size in _every_size(lab) if size.learned != "parted"]


@once
def parted_sizes(lab: Lab) -> list[Size]:
    """Sizes that equal another one in the example, though forward asks only that they are no smaller."""
    return [size for size in _every_size(lab) if size.learned == "parted"]


@once
def _every_size(lab: Lab) -> list[Size]:
    return list(free_sizes(*lab.precise, lab.settings.seed, parted=True))


def free_sizes(
    target: Target,
    arguments: Arguments,
    seed: int,
    takes: Callable[[Arguments], bool] | None = None,
    *,
    parted: bool = False,
) -> Iterator[Size]:
    """The same for a subject that is on no bench. `takes` says whether it runs on other arguments, if forward is not all.

    With `parted` also those that part company with a size which they equal in the example.
    """
    example = _Example(target, arguments, seed, takes)
    if gives_addresses(target):
        # A kernel that gets addresses does not reject tensors that no longer fit: it reads past their end.
        yield from (size for size in _confirmed(example, untraced(arguments), set()) if size.value > 1)
        return
    grown, ones = _grown(example)
    relations = traced(target, grown, seed) if _is_short(example) else None
    found: list[Size] = []
    for size in _confirmed(example, relations or untraced(arguments), ones if relations else set()):
        found.append(size)
        yield size
    if relations and parted:
        for size in list(found):
            yield from _parted(example, relations, size)
    if relations:
        yield from _broadcast(example, found)


@dataclass(frozen=True)
class _Example:
    """A subject on the arguments whose sizes are learned."""

    target: Target
    arguments: Arguments
    seed: int
    takes: Callable[[Arguments], bool] | None

    def at(self, size: Size, to: int) -> bool:
        """Whether the subject runs with this size at another value."""
        try:
            other = resized(self.arguments, size, to, self.seed)
            if self.takes is not None:
                return self.takes(other)
            forward(self.target, other, seed=self.seed)
        except Exception:  # the user's forward, on sizes that it may not allow
            return False
        return True


def _is_short(example: _Example) -> bool:
    try:
        with stopped_after(_MOST_OPERATIONS):
            forward(example.target, example.arguments, seed=example.seed, plain=True)
    except NoEnd:
        return False
    except Exception:  # the user's forward, without gradients and watched: stand-ins may still do
        return True
    return True


@dataclass(frozen=True)
class _Hypothesis:
    """Sizes that may be the ones to move together. `shrinks`: it has to be taken smaller as well, to be believed."""

    group: frozenset[str]
    learned: str
    shrinks: bool = False


def _confirmed(example: _Example, relations: Relations, ones: set[tuple[int, int]]) -> Iterator[Size]:
    covered: set[str] = set()
    for name in relations.dimensions:
        if name in covered:
            continue
        for hypothesis in _hypotheses(relations, name, covered):
            size = _size(relations, hypothesis, ones)
            confirmed = _taken(example, size, shrinks=hypothesis.shrinks) if size is not None else None
            if confirmed is not None:
                yield confirmed
                covered |= hypothesis.group
                break


def _parted(example: _Example, relations: Relations, whole: Size) -> Iterator[Size]:
    """Parts of a size that forward only asks to be no smaller than the rest: more keys than queries."""
    dims = {(position, dim) for position, dim, _ in whole.dims}
    group = frozenset(n for n, places in relations.places.items() if any((p.position, p.dim) in dims for p in places))
    for part, order in relations.loosened(group):
        (other,) = (place for name in order.sizes - part for place in relations.places[name][:1])
        size = _size(relations, _Hypothesis(part, "parted"), set())
        if (
            size is not None
            and size.dims
            and other.dim is not None
            and (confirmed := _taken(example, size)) is not None
        ):
            yield replace(confirmed, least=confirmed.value + confirmed.multiple_of, beside=(other.position, other.dim))


def _hypotheses(relations: Relations, name: str, covered: set[str]) -> list[_Hypothesis]:
    """The likeliest first; none where the size follows something that cannot move."""
    value = relations.values[name]
    equal = {n for n, v in relations.values.items() if v == value and n not in relations.fixed and n not in covered}
    numbers = {n for n in equal if relations.places[n][0].dim is None}
    if not relations.traced:
        multiples = {n for n in relations.dimensions if value > 1 and relations.values[n] % value == 0}
        tried = [equal, equal - numbers, multiples | equal, (multiples | equal) - numbers]
        return [_Hypothesis(group, "together") for group in dict.fromkeys(map(frozenset, tried))]
    untold = numbers & relations.unseen  # PyTorch took them for constants, and sizes that follow them for fixed
    last = [_Hypothesis(frozenset({name, *untold}), "together")] if untold else []
    if name not in relations.pinned and relations.closed({name}) is None:
        return last
    tried_with: list[tuple[set[str], str, bool]] = [
        # What is only compared with a number may be free, if it can grow and shrink; or all that were are one size.
        ({name}, "relations", name in relations.pinned),
        ({name} | (equal & relations.pinned), "together", False),
        (equal, "together", False),
        (equal - numbers, "together", False),
    ]
    closed = [(relations.closed(group), learned, shrinks) for group, learned, shrinks in tried_with]
    return [_Hypothesis(group, learned, shrinks) for group, learned, shrinks in closed if group is not None] + last


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


def _taken(example: _Example, size: Size, *, shrinks: bool = False) -> Size | None:
    """The size as a real forward confirms it: one step larger, else by a larger step that divides it, else twice."""
    if (ends := offsets(example.arguments, size)) and not size.ends:
        following = _taken(example, replace(size, ends=ends), shrinks=shrinks)
        if following is not None:
            return following
    larger = [d for d in divisors(size.value) if d % size.multiple_of == 0]
    for step in dict.fromkeys((*larger[:2], size.value)):
        if not example.at(size, size.value + step):
            continue
        if shrinks and size.value > step and not example.at(size, size.value - step):
            return None
        taken = replace(size, multiple_of=step)
        # A bound may be PyTorch's own (another kernel from 16 samples on), or the user's.
        smallest = taken.least > step and example.at(taken, step)
        return replace(taken, least=step if smallest or taken.least <= step else taken.least)
    return None if size.own else _taken(example, replace(size, own=True), shrinks=shrinks)


def _grown(example: _Example) -> tuple[Arguments, set[tuple[int, int]]]:
    """The arguments with every dimension of size 1 that forward lets grow at one other size, and which these are.

    At 1 everything broadcasts, and PyTorch cannot say what belongs together. All at once is tried first: a batch of 1 is
    one in every input.
    """
    arguments = example.arguments
    ones = _ones(arguments)
    present = {n for leaf in arguments.leaves for n in leaf.tensor.shape}
    to = next(n for n in range(2, len(present) + 3) if n not in present)

    def at(dims: list[tuple[int, int]]) -> Size:
        return Size(1, tuple((position, dim, 1) for position, dim in dims))

    if not ones or example.at(at(ones), to):
        kept = ones
    else:
        kept = []
        for one in ones[:_MOST_ONES]:
            if example.at(at([*kept, one]), to):
                kept.append(one)
    return (resized(arguments, at(kept), to, example.seed) if kept else arguments), set(kept)


def _broadcast(example: _Example, found: list[Size]) -> Iterator[Size]:
    """Dimensions of size 1 that can only become what they are broadcast against."""
    free = {(position, dim) for size in found for position, dim, _ in size.dims}
    others = sorted({n for leaf in example.arguments.leaves for n in leaf.tensor.shape if n > 1})
    for position, dim in [one for one in _ones(example.arguments) if one not in free][:_MOST_ONES]:
        size = Size(1, ((position, dim, 1),), learned="broadcast")
        to = next((n for n in others if example.at(size, n)), None)
        if to is not None:
            yield replace(size, multiple_of=to, least=to)


def _ones(arguments: Arguments) -> list[tuple[int, int]]:
    return [
        (leaf.position, dim)
        for leaf in arguments.leaves
        if not leaf.of_module
        for dim, n in enumerate(leaf.tensor.shape)
        if n == 1
    ]
