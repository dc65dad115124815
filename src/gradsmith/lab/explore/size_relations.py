"""What PyTorch says about the sizes of an example: which have to change together, and in which steps.

The user's forward runs on stand-ins whose sizes are symbols; whatever is asked about a size on the way is noted with its
answer (`torch_says.compared_sizes`). A set of sizes can change if all those answers stay as they are when the sizes in the
set are scaled by one factor. Equal sizes that nobody compares stay free of each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from gradsmith.lab.measure.oracle import plain_forward
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.names import kept_names, owners_of
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.process.torch_says import Comparison
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target


@dataclass(frozen=True)
class SizePlace:
    """Where a size stands: a dimension of a tensor, or (dim None) a Python number among the arguments."""

    position: int
    dim: int | None = None


@dataclass(frozen=True)
class Relations:
    """Named sizes, and what was asked about them. `traced` is False where PyTorch could not be asked."""

    values: dict[str, int]
    places: dict[str, list[SizePlace]]
    fixed: frozenset[str]  # sizes of a module's parameters: they do not move
    traced: bool
    comparisons: list[Comparison] = field(default_factory=list)
    unseen: frozenset[str] = frozenset()  # numbers that PyTorch was not told of

    @cached_property
    def dimensions(self) -> list[str]:
        """Names of the sizes that may be changed, in the order of the arguments."""
        return [name for name, found in self.places.items() if found[0].dim is not None and name not in self.fixed]

    @cached_property
    def equalities(self) -> list[Comparison]:
        """What has to stay true; "not more than", where both are equal, is one: an index has the rows of its tensor."""
        found = [c for c in self.comparisons if len(c.sizes) > 1 and c.kind == "equal"]
        return found + [_equality(*c.sizes) for c in self.comparisons if self._is_tight(c)]

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Sizes that were compared with a number and had just that value: by an assert, or as the end of a loop."""
        single = [c for c in self.comparisons if len(c.sizes) == 1]
        found = {name for c in single for name in c.sizes if self._pins(c, name)}
        return frozenset(found) | self.unseen

    def loosened(self, group: frozenset[str]) -> Iterator[tuple[frozenset[str], Comparison]]:
        """Parts of the group that could grow without the rest, and the "not more than" that was taken for an equality."""
        for tight in (c for c in self.comparisons if c.stated and self._is_tight(c) and c.sizes <= group):
            for name in sorted(tight.sizes):
                part = replace(self, comparisons=[c for c in self.comparisons if c is not tight]).closed({name})
                apart = part is not None and part < group and not tight.sizes <= part
                if part is not None and apart and tight.holds(self.moved(part, 2)):
                    yield part, tight

    def moved(self, names: Iterable[str], up: int, down: int = 1) -> dict[str, int]:
        return {**self.values, **{name: self.values[name] * up // down for name in names}}

    def closed(self, names: Iterable[str]) -> frozenset[str] | None:
        """These sizes and those that have to follow them; None where something that follows cannot move.

        Where one of several could follow, a single one does: rows * columns = length, and the rows change.
        """
        group = frozenset(names)
        while (broken := self._broken(group)) is not None:
            others = sorted(broken.sizes - group - self.fixed)
            followed = next(
                (
                    group.union(more)
                    for count in range(1, len(others) + 1)
                    for more in itertools.combinations(others, count)
                    if broken.holds(self.moved(group.union(more), 2))
                ),
                None,
            )
            if followed is None or followed & self.fixed:
                return None
            group = followed
        return group

    def step(self, group: frozenset[str]) -> int:
        """The least by which the base (what all sizes of the group are multiples of) can grow: 4 where 4 divides it."""
        base = self.base(group)
        twice = self.moved(group, 2)
        asked = [c for c in self.comparisons if c.kind == "equal" and c.sizes & group and c.holds(twice)]
        for step in divisors(base):
            if all(c.holds(self.moved(group, base + step, base)) for c in asked):
                return step
        return base

    def least(self, group: frozenset[str]) -> int:
        """The smallest base that no order forbids; 1 where only 0 or 1 are set apart, which PyTorch does for itself."""
        base = self.base(group)
        asked = [c for c in self.comparisons if c.kind == "order" and c.sizes & group]
        for size in range(base - 1, 1, -1) if asked else ():
            if not all(c.holds(self.moved(group, size, base)) for c in asked):
                return size + 1
        return 1

    def base(self, group: frozenset[str]) -> int:
        return math.gcd(*(self.values[name] for name in group))

    def _broken(self, group: frozenset[str]) -> Comparison | None:
        # Twice is a multiple of whatever divides it now.
        moved = self.moved(group, 2)
        return next((c for c in self.equalities if c.sizes & group and not c.holds(moved)), None)

    def _is_tight(self, comparison: Comparison) -> bool:
        values = [self.values[name] for name in comparison.sizes]
        return comparison.kind == "order" and comparison.between and values[0] == values[-1]

    def _pins(self, comparison: Comparison, name: str) -> bool:
        value = self.values[name]
        if comparison.kind == "equal":
            return not comparison.holds(self.moved([name], 2))
        return value > 2 and not comparison.holds({**self.values, name: value - 1})


def traced(target: Target, arguments: Arguments, seed: int) -> Relations | None:
    """What PyTorch says of this forward, with the numbers as symbols if it bears that; None if it cannot run it."""
    call = plain_forward(target) or target.call
    # What forward keeps for itself (a cache, a running mean) may not be left with stand-ins in it.
    owners = owners_of(target.function or target.module or target.original, *arguments.modules)
    for numbers, real in ((True, False), (False, False), (False, True)):
        if numbers and not _numbers(arguments):
            continue
        try:
            seed_all(seed)
            with kept_names(owners):
                return _traced(call, arguments, numbers=numbers, real=real)
        except Exception:  # the user's code on stand-ins: foreign code, NumPy, `isinstance(n, int)`
            continue
    return None


def untraced(arguments: Arguments) -> Relations:
    """The same without PyTorch: sizes and numbers by name, and nothing known about them."""
    tensors = _distinct(arguments)
    names = [[f"{p}.{d}" for d in range(t.ndim)] for p, t in tensors.items()]
    return _relations(arguments, tensors, names, {}, [], traced=False)


def divisors(n: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return [*small, *(n // d for d in reversed(small) if d * d != n)]


def _equality(first: str, second: str) -> Comparison:
    return Comparison("equal", frozenset((first, second)), lambda sizes: sizes[first] == sizes[second])


def _traced(call: Any, arguments: Arguments, *, numbers: bool, real: bool) -> Relations:
    tensors = _distinct(arguments)
    stated = _numbers(arguments) if numbers else []

    def on_stand_ins(given: list[Any]) -> Any:
        by_tensor = {id(t): g for t, g in zip(tensors.values(), given)}
        args, kwargs = _with_numbers(arguments, stated, given[len(tensors) :]).with_tensors(
            {x.position: by_tensor[id(x.tensor)] for x in arguments.leaves}
        )
        return call(*args, **kwargs)

    plain = [t.detach().contiguous() for t in tensors.values()]
    values = [*plain, *(arguments.flat[i] for i in stated)]
    names, comparisons = torch_says.compared_sizes(on_stand_ins, values, real=real)
    own = {i: name for i, (name,) in zip(stated, names[len(tensors) :])}
    return _relations(arguments, tensors, names[: len(tensors)], own, comparisons, traced=True)


def _relations(
    arguments: Arguments,
    tensors: Mapping[int, Tensor],
    names: list[list[str]],
    numbers: Mapping[int, str],
    comparisons: list[Comparison],
    *,
    traced: bool,
) -> Relations:
    values: dict[str, int] = {}
    places: dict[str, list[SizePlace]] = {}
    fixed: set[str] = set()
    for tensor, own in zip(tensors.values(), names):
        same = [x for x in arguments.leaves if x.tensor is tensor]
        for dim, name in enumerate(own):
            values[name] = tensor.shape[dim]
            places[name] = [SizePlace(x.position, dim) for x in same]
            if any(x.of_module for x in same) or not values[name]:
                fixed.add(name)
    unseen = {i: f"number {i}" for i in _numbers(arguments) if i not in numbers}
    for i, name in {**numbers, **unseen}.items():
        values[name], places[name] = arguments.flat[i], [SizePlace(i)]
    return Relations(values, places, frozenset(fixed), traced, comparisons, frozenset(unseen.values()))


def _distinct(arguments: Arguments) -> dict[int, Tensor]:
    """The tensors by their first position: one that is passed twice stays one."""
    found: dict[int, Tensor] = {}
    for leaf in arguments.leaves:
        if not any(leaf.tensor is t for t in found.values()):
            found[leaf.position] = leaf.tensor
    return found


def _numbers(arguments: Arguments) -> list[int]:
    """Positions of the Python integers that may state a size: 0 and 1 stand for too much else."""
    return [i for i, v in enumerate(arguments.flat) if isinstance(v, int) and not isinstance(v, bool) and v > 1]


def _with_numbers(arguments: Arguments, positions: list[int], numbers: list[Any]) -> Arguments:
    flat = list(arguments.flat)
    for i, number in zip(positions, numbers):
        flat[i] = number
    return Arguments(flat, arguments.spec, arguments.leaves)
