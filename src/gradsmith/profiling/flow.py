"""How data moves through a recorded run: which loops carry state, what is computed twice, what could leave a loop.

Every piece of memory gets a value number: the hash of the operation that wrote it and of the values it read. Two
operations with the same number computed the same thing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from gradsmith.profiling.events import Event, Phase, Recording, SeenMemory
from gradsmith.source import knowledge as know
from gradsmith.source.spans import LoopSpan


@dataclass
class LoopUse:
    """One loop of the user's code as it ran: its operations and what passes from one iteration to the next."""

    loop: LoopSpan
    phase: Phase
    events: list[Event] = field(default_factory=list)
    carriers: set[tuple[str, str]] = field(default_factory=set)  # (operation that wrote, operation that read it later)
    hoistable: list[Event] = field(default_factory=list)  # do not depend on what earlier iterations computed
    invariant: list[Event] = field(default_factory=list)  # compute the same value in every iteration

    @cached_property
    def iterations(self) -> int:
        return len({e.iterations[self.loop] for e in self.events})

    @property
    def recurrent(self) -> bool:
        """Whether iterations must run one after the other."""
        return any(not (a in know.GATHERING and b in know.GATHERING) for a, b in self.carriers)

    @property
    def work(self) -> list[Event]:
        return [e for e in self.events if not e.is_view]


class DataFlow:
    """The data flow of a recording, worked out when it is asked for."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @cached_property
    def values(self) -> list[int]:
        """The value number of each event."""
        numbers: dict[int, int] = {}
        found: list[int] = []
        for event in self.recording.events:
            read = tuple(_seen(a, numbers.get(a.storage, a.storage)) for a in event.reads)
            dtypes = tuple(a.dtype for a in event.outputs)
            key: Hashable = (event.op, read, event.arguments, dtypes)
            number = hash((key, event.index)) if event.op in know.NEVER_THE_SAME else hash(key)
            for i, storage in enumerate(event.fresh):
                numbers[storage] = hash((number, i))
            for storage in event.mutated:
                numbers[storage] = hash((number, numbers.get(storage, storage)))
            found.append(number)
        return found

    @cached_property
    def readers(self) -> dict[int, list[Event]]:
        """Storage -> the events that read it, views included."""
        found: dict[int, list[Event]] = defaultdict(list)
        for event in self.recording.events:
            for storage in {a.storage for a in event.reads}:
                found[storage].append(event)
        return found

    @cached_property
    def mutations(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for event in self.recording.events:
            for storage in event.mutated:
                found[storage].append(event.index)
        return found

    @cached_property
    def loops(self) -> list[LoopUse]:
        """Every loop of the user's code in which operations ran, outer loops before inner ones."""
        uses: dict[tuple[LoopSpan, Phase], LoopUse] = {}
        for event in self.recording.events:
            if event.own_frames:
                for loop in event.iterations:
                    uses.setdefault((loop, event.phase), LoopUse(loop, event.phase)).events.append(event)
        for use in uses.values():
            self._carry(use)
            self._repeat(use)
        return [use for use in uses.values() if use.iterations > 1]

    def _carry(self, use: LoopUse) -> None:
        written: dict[int, tuple[int, str, bool]] = {}  # storage -> (iteration, operation, depends on the past)
        first = use.events[0].iterations[use.loop]
        for event in use.events:
            now = event.iterations[use.loop]
            tainted = False
            for access in event.reads:
                if access.storage not in written or (event.op in know.OVERWRITES and access.storage in event.mutated):
                    continue
                when, writer, past = written[access.storage]
                tainted |= past
                if when != now:
                    tainted = True
                    if not event.is_view:
                        use.carriers.add((writer, event.op))
            if not tainted and now != first and not event.is_view:
                use.hoistable.append(event)
            for storage in (*event.fresh, *event.mutated):
                if event.op in know.OVERWRITES and storage in written and written[storage][2]:
                    tainted = True
                written[storage] = (now, event.op, tainted)
            # Views of what an earlier iteration wrote are read through: the view's storage is the writer's.

    def _repeat(self, use: LoopUse) -> None:
        seen: dict[int, set[int]] = defaultdict(set)
        for event in use.events:
            seen[self.values[event.index]].add(event.iterations[use.loop])
        total = len({e.iterations[use.loop] for e in use.events})
        for event in use.events:
            if not event.is_view and not event.mutated and total > 1 and len(seen[self.values[event.index]]) == total:
                use.invariant.append(event)

    def consumers(self, event: Event) -> list[Event]:
        """Events that read what this one wrote, looking through views, until it is overwritten."""
        return [e for s in event.fresh for e in self.readers[s] if e.index > event.index and not e.is_view]


def _seen(access: SeenMemory, number: int) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    return number, access.offset, access.shape, access.strides
