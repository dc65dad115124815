"""What the attribution pass writes down: one Event per operation, with the user's line, the data it touched, its time."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gradsmith.profiling.lines import Site
from gradsmith.source.spans import LoopSpan

Phase = Literal["forward", "backward"]


@dataclass(slots=True)  # not frozen: there are several per operation, and that takes three times as long to build
class SeenMemory:
    """A tensor as an operation saw it: which memory, and which part of it."""

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int
    dtype: str

    @property
    def numel(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n

    @property
    def distinct(self) -> int:
        """Elements in memory: a dimension that is only expanded has one."""
        n = 1
        for size, stride in zip(self.shape, self.strides):
            n *= size if stride else 1
        return n


@dataclass
class Event:
    """One operation. `seconds` is the kernel's time under observation; `node` the autograd node it ran for."""

    index: int
    op: str
    phase: Phase
    sites: tuple[Site, ...]
    iterations: dict[LoopSpan, int]
    reads: tuple[SeenMemory, ...]
    outputs: tuple[SeenMemory, ...]
    mutated: tuple[int, ...]
    arguments: Hashable
    is_view: bool
    fresh: tuple[int, ...]  # storages that this operation allocated
    node: str
    own_frames: bool  # the user's own code called it; otherwise `sites` is the line of forward it is the gradient of
    start: float
    seconds: float
    flops: int = 0
    grad_mode: bool = True
    built_in: str = ""  # the module of torch's own that called it: "LSTMCell"
    parent: int | None = None  # the event of forward whose node this one runs for

    @property
    def site(self) -> Site | None:
        return self.sites[0] if self.sites else None

    @property
    def read_bytes(self) -> int:
        return 0 if self.is_view else sum(a.bytes for a in self.reads)

    @property
    def written_bytes(self) -> int:
        return 0 if self.is_view else sum(a.bytes for a in self.outputs)


def cut_dimension(cuts: Sequence[Event]) -> int | None:
    """The dimension along which operations such as `x[t]` or `x[:, t]` cut a tensor into parts; None where that is not one.

    By where the parts lie in memory: the step from one to the next is the stride of that dimension.
    """
    whole = cuts[0].reads[0] if cuts and cuts[0].reads else None
    if whole is None or any(not e.outputs or not e.reads or e.reads[0].storage != whole.storage for e in cuts):
        return None
    offsets = sorted({e.outputs[0].offset for e in cuts})
    steps = {b - a for a, b in itertools.pairwise(offsets)}
    found = [d for d, (size, stride) in enumerate(zip(whole.shape, whole.strides)) if size > 1 and {stride} == steps]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Saved:
    """A tensor that waits for backward: who keeps it, and how."""

    storage: int
    bytes: int
    storage_bytes: int
    how: Literal["saved tensor", "ctx attribute"]
    holder: str  # the autograd node, or the Function's name
    role: Literal["input", "output", "intermediate"]
    site: Site | None
    dtype: str
    shape: tuple[int, ...]
    attribute: str = ""
    is_mask: bool = False  # floating, and every element is 0 or 1


@dataclass
class FunctionCalls:
    """The calls of one custom Function in a run."""

    name: str
    count: int
    setup_context: bool
    site: Site | None


@dataclass
class Recording:
    """Everything one observed run showed."""

    events: list[Event] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    inputs: dict[int, str] = field(default_factory=dict)  # storage -> name of the input
    functions: list[FunctionCalls] = field(default_factory=list)
    outputs: set[int] = field(default_factory=set)
    peak_bytes: int = 0
    stopped: str = ""  # why the recording ends early

    def of(self, phase: Phase) -> list[Event]:
        return [e for e in self.events if e.phase == phase]

    def count(self, phase: Phase) -> int:
        """Operations that do work; views are free."""
        return sum(not e.is_view for e in self.events if e.phase == phase)

    def written(self, phase: Phase) -> int:
        return sum(e.written_bytes for e in self.events if e.phase == phase)

    @property
    def saved_bytes(self) -> int:
        """Bytes of distinct memory that backward keeps alive; one tensor saved twice counts once."""
        return sum({s.storage: s.storage_bytes for s in self.saved}.values())
