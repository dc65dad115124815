"""What the guard saw: accesses that are wrong, who filled a tensor last, and how much each kernel moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Event:
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
    stores: list[Store] = field(default_factory=list)


@dataclass
class Traffic:
    """All launches of one kernel."""

    path: str = ""
    line: int = 0
    launches: int = 0
    programs: int = 0
    loaded: int = 0  # bytes
    stored: int = 0
    blocks: set[int] = field(default_factory=set)  # integers among its constexpr arguments

    def add(self, other: Traffic) -> None:
        self.launches += other.launches
        self.programs += other.programs
        self.loaded += other.loaded
        self.stored += other.stored
        self.blocks |= other.blocks


@dataclass
class Seen:
    """Everything since it was last cleared."""

    events: dict[tuple[str, str, int, str], Event] = field(default_factory=dict)
    filled: dict[int, Filled] = field(default_factory=dict)  # by the address of the storage
    traffic: dict[str, Traffic] = field(default_factory=dict)
    undefined: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)  # loads: line -> kernel, argument

    def report(self, event: Event) -> None:
        """Note an event; one like it at the same line only counts."""
        key = (event.kind, event.path, event.line, event.argument)
        if key in self.events:
            self.events[key].count += 1
        else:
            self.events[key] = event


SEEN = [Seen()]  # the last one hears


class listening:
    """What happens inside the block is heard apart from everything else."""

    def __enter__(self) -> Seen:
        SEEN.append(Seen())
        return SEEN[-1]

    def __exit__(self, *_: Any) -> None:
        inner = SEEN.pop()
        for key, event in inner.events.items():
            SEEN[-1].events.setdefault(key, event)
        SEEN[-1].filled.update(inner.filled)
        SEEN[-1].undefined.update(inner.undefined)
        for name, traffic in inner.traffic.items():
            SEEN[-1].traffic.setdefault(name, Traffic(traffic.path, traffic.line)).add(traffic)


class unheard:
    """What happens inside the block is nobody's: kernels run there that the user did not write, or on what nobody would pass."""

    def __enter__(self) -> None:
        SEEN.append(Seen())

    def __exit__(self, *_: Any) -> None:
        SEEN.pop()


class Fill:
    """What lanes hold that a mask leaves undefined: zero, as on most machines, or plain nonsense at chosen lines."""

    lines: set[tuple[str, int]] | None = None  # where; None means nowhere


class Spoil:
    """Lines of stores that store NaN instead: what becomes NaN then was computed from them."""

    lines: frozenset[tuple[str, int]] = frozenset()
