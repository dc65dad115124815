"""Seconds for every event: kernel times from the attribution pass, fitted to the unobserved clock.

Observing costs several microseconds per operation, so raw times would make small operations look dear. What an
observed one-element operation costs is taken off; the rest of the unobserved time is spread over operations and lines.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradsmith.profiling.events import Event, Phase, Recording
from gradsmith.profiling.machine import Machine

_VIEW = 1.0  # a view costs a call like any other: measured 1.4 us (unsqueeze) and 2.0 us (x[0]), a product 1.5 us
_SMALL = 4096  # bytes that any kernel moves in less time than it takes to call it
_DETACH = 0.05  # mostly the recorder's own
_FROM_C, _NODE = 0.6, 2.0  # an operation that autograd calls, and the node that calls it; see _weights


@dataclass(frozen=True)
class OpUse:
    """All calls of one operation from one line."""

    op: str
    phase: Phase
    path: str | None
    line: int | None
    calls: int
    seconds: float
    share: float
    bytes: int
    flops: int


@dataclass(frozen=True)
class LineUse:
    """Everything one line of the user's code costs, its part of backward included."""

    path: str
    line: int
    text: str
    forward_s: float
    backward_s: float
    share: float
    ops: int


@dataclass(frozen=True)
class Clocked:
    """The unobserved time of one phase: the quickest round and the median."""

    best: float
    median: float


@dataclass(frozen=True)
class Fitted:
    """Seconds per event: all of it in a usual round, and its kernel alone in the quickest one."""

    spent: list[float]
    kernels: list[float]


def fitted(recordings: Sequence[Recording], clocked: dict[Phase, Clocked], machine: Machine) -> Fitted:
    """For the events of the first recording; the others are repeats, of which the quickest time counts.

    Quickest kernels are fitted to the quickest round, so that a busy machine does not look like Python overhead; the
    result is scaled to the median.
    """
    first = recordings[0]
    kernels = kernel_seconds(first.events, quickest(recordings), machine)
    price = _weights(first.events)
    spent = [0.0] * len(first.events)
    for phase, clock in clocked.items():
        total = clock.best
        mine = [e.index for e in first.events if e.phase == phase]
        busy = sum(kernels[i] for i in mine)
        weights = {i: price[i] for i in mine}
        # Each operation costs at least its call; a kernel share that leaves no room for that is an observer's error.
        calls = min(total, machine.op_s * sum(weights.values()))
        scale = min(1.0, (total - calls) / busy) if busy > 0 else 0.0
        left = max(0.0, total - scale * busy)
        weight = sum(weights.values()) or 1.0
        for i in mine:
            kernels[i] *= scale
            spent[i] = (kernels[i] + left * weights[i] / weight) * (clock.median / total if total else 0.0)
    return Fitted(spent, kernels)


def quickest(recordings: Sequence[Recording]) -> list[float]:
    """The observed time of each event of the first recording: the least of all recordings that did the same."""
    first = recordings[0]
    same = [r for r in recordings if [e.op for e in r.events] == [e.op for e in first.events]]
    return [min(r.events[i].seconds for r in same) for i in range(len(first.events))]


def kernel_seconds(events: Sequence[Event], raw: Sequence[float], machine: Machine) -> list[float]:
    """Observed times without what observing any operation costs."""
    floor = floor_seconds(events, raw, machine)
    return [0.0 if e.is_view else max(0.0, t - floor) for e, t in zip(events, raw)]


def floor_seconds(events: Sequence[Event], raw: Sequence[float], machine: Machine) -> float:
    """What any observed operation costs; the small operations of the run itself tell, on the machine as it was then."""
    small = [t for e, t in zip(events, raw) if not e.is_view and e.read_bytes + e.written_bytes <= _SMALL]
    return max(statistics.median(small), machine.observed_op_s) if small else 2 * machine.observed_op_s


def by_op(events: Iterable[Event], spent: Sequence[float]) -> list[OpUse]:
    groups: dict[tuple[str, Phase, str | None, int | None], list[Event]] = defaultdict(list)
    for e in events:
        groups[e.op, e.phase, e.site.path if e.site else None, e.site.line if e.site else None].append(e)
    total = sum(spent) or 1.0
    found = []
    for (op, phase, path, line), group in groups.items():
        cost = sum(spent[e.index] for e in group)
        moved = sum(e.read_bytes + e.written_bytes for e in group)
        found.append(OpUse(op, phase, path, line, len(group), cost, cost / total, moved, sum(e.flops for e in group)))
    return sorted(found, key=lambda use: -use.seconds)


def by_line(events: Iterable[Event], spent: Sequence[float]) -> list[LineUse]:
    groups: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for e in events:
        if e.site is not None:
            groups[e.site.path, e.site.line].append(e)
    total = sum(spent) or 1.0
    found = []
    for (path, line), group in groups.items():
        forward = sum(spent[e.index] for e in group if e.phase == "forward")
        backward = sum(spent[e.index] for e in group if e.phase == "backward")
        text = group[0].site.text.strip() if group[0].site else ""
        ops = sum(not e.is_view for e in group)
        found.append(LineUse(path, line, text, forward, backward, (forward + backward) / total, ops))
    return sorted(found, key=lambda use: -(use.forward_s + use.backward_s))


def _weights(events: Sequence[Event]) -> dict[int, float]:
    """What each operation costs whatever its size, in calls from Python.

    In backward autograd pays for its nodes more than for the operations in them. Measured on torch 2.13 with one element, calls
    from Python at 1.5 us: neg 4.1 us (one operation), two views 7.5 (two nodes), mul 5.4 (two operations), mm 7.4 (four or five).
    """
    siblings = Counter((e.parent, e.node) for e in events if e.phase == "backward" and not e.own_frames)
    found = {}
    for e in events:
        if e.op in ("detach", "alias"):
            found[e.index] = _DETACH
        elif e.phase == "backward" and not e.own_frames and e.parent is not None:
            found[e.index] = _FROM_C + _NODE / siblings[e.parent, e.node]
        else:
            found[e.index] = _VIEW if e.is_view else 1.0
    return found
