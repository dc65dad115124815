"""Other sizes that satisfy the size relations: more than one, primes, multiples, non-square; none and many where it is cheap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gradsmith.lab.explore.move import Kind, Move
from gradsmith.lab.explore.sizes import Size, resized, sizes
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments

_MANY = 300
_CHEAP = 1 << 16  # elements of all inputs together, at that size


@dataclass(frozen=True)
class Resize(Move):
    """One free size of the example, and all that belongs to it, at another value."""

    dims: tuple[tuple[int, int, int], ...]
    numbers: tuple[tuple[int, int], ...]
    before: int
    to: int
    kind: ClassVar[Kind] = "size"
    order: ClassVar[int] = 1

    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        return resized(arguments, Size(self.before, self.dims, self.numbers), self.to, seed)

    def words(self) -> str:
        return f"with {self.to} instead of {self.before} in dim {self.dims[0][1]} of '{self.argument}'"


@dataclass(frozen=True)
class Empty(Resize):
    """No element at all: foreign code may crash on it."""

    risky: ClassVar[bool] = True

    def words(self) -> str:
        return f"with dim {self.dims[0][1]} of '{self.argument}' empty"


def moves(lab: Lab, arguments: Arguments) -> Iterator[Move]:
    """For each free size a few others, the most telling first, one size after the other."""
    names = {leaf.position: leaf.name for leaf in arguments.leaves}
    found = [(size, list(_others(lab, arguments, size))) for size in sizes(lab)]
    for turn in range(max((len(others) for _, others in found), default=0)):
        for size, others in found:
            if turn < len(others):
                kind = Empty if others[turn] == 0 else Resize
                yield kind(names[size.dims[0][0]], size.dims, size.numbers, size.value, others[turn])


def _others(lab: Lab, arguments: Arguments, size: Size) -> Iterator[int]:
    step = size.multiple_of
    wanted = [3 * step, step, 2 * step, 7 * step, 5 * step] if size.value != 3 * step else [5 * step, step, 2 * step, 7 * step]
    total = sum(leaf.tensor.numel() for leaf in arguments.leaves)
    if total // max(size.value, 1) * _MANY <= _CHEAP:
        wanted.append(_MANY - _MANY % step)
    if lab.empty:
        wanted.append(0)
    return (n for n in dict.fromkeys(wanted) if n != size.value and (n >= size.least or n == 0))
