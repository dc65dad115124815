"""What the guard saw: accesses that are wrong, who filled a tensor last, and how much each kernel moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class WrongAccess:
    """One kind of wrong access at one line of a kernel; `count` says how many more there were like it."""

    kind: str  # load, store, order, same value, lanes, mixed
    kernel: str
    path: str
    line: int
    argument: str
    shape: tuple[int, ...]
    words: str  # element and program ids
    whole: bool = True  # the tensor is contiguous, and all of its storage
    count: int = 1
    elements: int = 0  # of the storage
    touched: tuple[tuple[int, int], ...] = ()  # of an access that leaves it: first and last of each run of elements


@dataclass(frozen=True)
class Store:
    """A line that stores into a tensor."""

    kernel: str
    path: str
    line: int
    argument: str


@dataclass
class Filled:
    """What launches did to one storage: the lines that stored, the last one last, and which bytes were written."""

    nbytes: int
    item: int
    written: np.ndarray[Any, Any]
    shape: tuple[int, ...]  # of the tensor
    unset: bool = False  # its last element was NaN before anything was stored, as memory is that nobody has written
    stores: list[Store] = field(default_factory=list)

    def tail(self, shape: tuple[int, ...]) -> Tail | None:
        """What was not stored of a tensor of this shape that is all of the storage, if it is the end along a dimension."""
        many = len(self.written) - 1
        if int(np.prod(shape)) != many or not self.stores:
            return None
        flat = _end(~self.written[:many], (many,))
        return flat or _end(~self.written[:many].reshape(shape), shape)


@dataclass(frozen=True)
class Tail:
    """From this index on, nothing is stored in this dimension; in all elements, row by row, where there is none."""

    first: int
    size: int
    dimension: int | None


def _end(missing: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Tail | None:
    """
    >>> _end(np.array([[False, True], [False, True]]), (2, 2))
    Tail(first=1, size=2, dimension=1)
    """
    for axis, size in enumerate(shape):
        others = tuple(k for k in range(len(shape)) if k != axis)
        some: Any = missing.any(axis=others)
        every: Any = missing.all(axis=others)
        first = size - int(some.sum())
        if 0 < first < size and bool((some == every).all()) and not bool(some[:first].any()):
            return Tail(first, size, axis if len(shape) > 1 else None)
    return None


@dataclass
class Traffic:
    """All launches of one kernel."""

    path: str = ""
    line: int = 0
    launches: int = 0
    programs: int = 0
    idle: int = 0  # launches without a program
    loaded: int = 0  # bytes
    stored: int = 0
    blocks: set[int] = field(default_factory=set)  # integers among its constexpr arguments

    def add(self, other: Traffic) -> None:
        self.launches += other.launches
        self.programs += other.programs
        self.idle += other.idle
        self.loaded += other.loaded
        self.stored += other.stored
        self.blocks |= other.blocks


@dataclass
class KernelLog:
    """Everything since it was last cleared."""

    events: dict[tuple[str, str, int, str], WrongAccess] = field(default_factory=dict)
    filled: dict[int, Filled] = field(default_factory=dict)  # by the address of the storage
    traffic: dict[str, Traffic] = field(default_factory=dict)
    undefined: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)  # loads: line -> kernel, argument

    def report(self, event: WrongAccess) -> None:
        """Note an event; one like it at the same line only counts."""
        key = (event.kind, event.path, event.line, event.argument)
        if key in self.events:
            self.events[key].count += 1
        else:
            self.events[key] = event


LOGS = [KernelLog()]  # what happens is written into the last one


class kernels_logged:
    """What happens inside the block is logged apart from everything else."""

    def __enter__(self) -> KernelLog:
        LOGS.append(KernelLog())
        return LOGS[-1]

    def __exit__(self, *_: Any) -> None:
        inner = LOGS.pop()
        for key, event in inner.events.items():
            LOGS[-1].events.setdefault(key, event)
        LOGS[-1].filled.update(inner.filled)
        LOGS[-1].undefined.update(inner.undefined)
        for name, traffic in inner.traffic.items():
            LOGS[-1].traffic.setdefault(name, Traffic(traffic.path, traffic.line)).add(traffic)


class kernels_unlogged:
    """What happens inside the block is nobody's: kernels run there that the user did not write, or on what nobody would pass."""

    def __enter__(self) -> None:
        LOGS.append(KernelLog())

    def __exit__(self, *_: Any) -> None:
        LOGS.pop()


class Fill:
    """What lanes hold that a mask leaves undefined: zero, as on most machines, or plain nonsense at chosen lines."""

    lines: set[tuple[str, int]] | None = None  # where; None means nowhere


class Spoil:
    """Lines of stores that store NaN instead: what becomes NaN then was computed from them."""

    lines: frozenset[tuple[str, int]] = frozenset()
