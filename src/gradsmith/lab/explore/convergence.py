"""Had the loops of forward come to rest when they ended? A gradient of the limit is right only where the limit is reached.

One forward runs under `sys.settrace`. In the code of the subject's own file, the tensors that a loop carries from one pass
to the next are compared over its last two passes. Loops are found in the bytecode: they are its jumps backwards.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

_AT_REST = 1e-6  # the change in the last pass, as a share of the largest value that the tensor had
_MUCH = 100.0
Place = tuple[str, int]  # the name of the code and the line of the loop


@dataclass(frozen=True)
class Ending:
    """How a loop ended: the change in its last pass (the largest, if it ran several times), and whether it ran to the end
    of what it iterates over."""

    change: float
    exhausted: bool

    def worse(self, other: Ending) -> Ending:
        return Ending(max(self.change, other.change), self.exhausted or other.exhausted)


def converged(target: Target, arguments: Arguments, seed: int) -> bool | None:
    """Whether every loop of forward had come to rest; None where no loop carries a tensor."""
    found = endings(target, arguments, seed)
    return all(e.change <= _AT_REST for e in found.values()) if found else None


def stops_too_early(lab: Lab, target: Target, arguments: Arguments) -> bool:
    """Whether a loop that comes to rest on the example does not on these arguments.

    A loop that is not at rest on the example either (over time, over layers) is no excuse.
    """
    before = _on_example(lab)
    if not any(e.change <= _AT_REST for e in before.values()):
        return False
    there = endings(target, arguments, lab.settings.seed)
    return any(_left_behind(before[place], ending) for place, ending in there.items() if place in before)


def _left_behind(before: Ending, there: Ending) -> bool:
    if before.change > _AT_REST or there.change <= _MUCH * before.change:
        return False
    return there.change > _AT_REST or (there.exhausted and not before.exhausted)


@once
def _on_example(lab: Lab) -> dict[Place, Ending]:
    return endings(*lab.precise, lab.settings.seed)


def endings(target: Target, arguments: Arguments, seed: int) -> dict[Place, Ending]:
    """How the loops of one forward ended; empty where forward raises."""
    watch = _Watch(_files(target))
    try:
        with _traced(watch):
            forward(target, arguments, seed=seed, plain=True)
    except Exception:  # the user's code, on arguments it may not take: reported elsewhere
        return {}
    return watch.found


@dataclass(frozen=True)
class _Loop:
    """Lines of a loop in one code object. `head` is where a pass begins; `counted` that it iterates over something."""

    head: int
    first: int
    last: int
    counted: bool
    carried: tuple[str, ...]


@dataclass
class _Passes:
    """One loop while it runs: what it carried at the beginning of the last two passes."""

    before: dict[str, Tensor] = field(default_factory=dict)
    now: dict[str, Tensor] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)

    def note(self, values: dict[str, Tensor]) -> None:
        self.before, self.now = self.now, values
        for name, tensor in values.items():
            self.peak[name] = max(self.peak.get(name, 0.0), _largest(tensor))

    @property
    def change(self) -> float | None:
        """How far the last pass moved what is carried; None where nothing can be compared."""
        both = [n for n in self.now if n in self.before and self.now[n].shape == self.before[n].shape]
        if not both:
            return None
        return max(_largest(self.now[n] - self.before[n]) / max(self.peak[n], 1e-300) for n in both)


class _Watch:
    """Follows the frames of some files, line by line."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.found: dict[Place, Ending] = {}

    def follow(self, frame: FrameType) -> _InFrame | None:
        code = frame.f_code
        return _InFrame(self, _loops(code)) if code.co_filename in self.files and _loops(code) else None


class _InFrame:
    def __init__(self, watch: _Watch, loops: tuple[_Loop, ...]) -> None:
        self.watch, self.loops = watch, loops
        self.running: dict[_Loop, _Passes] = {}
        self.line = 0

    def hear(self, frame: FrameType, event: str) -> None:
        if event not in ("line", "return"):
            return
        line = frame.f_lineno if event == "line" else -1
        for loop in self.loops:
            if loop.head == line:
                self.running.setdefault(loop, _Passes()).note(_carried(frame, loop))
            elif loop in self.running and not loop.first <= line <= loop.last:
                self._ended(frame, loop, self.running.pop(loop))
        self.line = line

    def _ended(self, frame: FrameType, loop: _Loop, passes: _Passes) -> None:
        exhausted = loop.counted and self.line == loop.head
        if not exhausted:  # else the last look was after the last pass
            passes.note(_carried(frame, loop))
        if (change := passes.change) is not None:
            place, ending = (frame.f_code.co_name, loop.head), Ending(change, exhausted)
            self.watch.found[place] = ending.worse(self.watch.found.get(place, ending))


@contextmanager
def _traced(watch: _Watch) -> Iterator[None]:
    """Trace the calls of this thread. A debugger, or whoever else traces, hears them as well and is put back."""
    theirs = sys.gettrace()

    def called(frame: FrameType, event: Any, arg: Any) -> Any:
        local = theirs(frame, event, arg) if theirs is not None else None
        mine = watch.follow(frame)
        if mine is None:
            return local

        def heard(frame: FrameType, event: Any, arg: Any) -> Any:
            nonlocal local
            local = local(frame, event, arg) if local is not None else None
            mine.hear(frame, event)
            return heard

        return heard

    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(theirs)


def _carried(frame: FrameType, loop: _Loop) -> dict[str, Tensor]:
    values = frame.f_locals
    tensors = {name: values[name] for name in loop.carried if isinstance(values.get(name), Tensor)}
    with torch.no_grad():
        # Copies: what is carried may be written in place.
        return {n: t.detach().clone() for n, t in tensors.items() if t.is_floating_point() or t.is_complex()}


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().nan_to_num(0.0).max()) if tensor.numel() else 0.0


@functools.cache
def _loops(code: CodeType) -> tuple[_Loop, ...]:
    steps = list(dis.get_instructions(code))
    lines = {o: line for start, end, line in code.co_lines() if line for o in range(start, end)}
    jumps = (*dis.hasjrel, *dis.hasjabs)
    ends: dict[int, int] = {}
    for step in steps:
        if step.opcode in jumps and isinstance(step.argval, int) and step.argval < step.offset:
            ends[step.argval] = max(ends.get(step.argval, 0), step.offset)
    found = []
    for start, end in ends.items():
        inside = [step for step in steps if start <= step.offset <= end]
        spanned = [lines[step.offset] for step in inside if step.offset in lines]
        carried = _carried_names(inside)
        if carried and start in lines:
            counted = inside[0].opname == "FOR_ITER"
            found.append(_Loop(lines[start], min(spanned), max(spanned), counted, carried))
    return tuple(found)


def _carried_names(steps: list[dis.Instruction]) -> tuple[str, ...]:
    """The local names that are read before they are written, and written."""
    read_first: dict[str, None] = {}
    written: set[str] = set()
    for step in steps:
        words = step.opname.split("_")
        if not {"FAST", "DEREF", "CLOSURE"} & set(words):
            continue
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        for verb, name in zip((w for w in words if w in ("LOAD", "STORE")), names):
            if verb == "STORE":
                written.add(name)
            elif name not in written:
                read_first[name] = None
    return tuple(name for name in read_first if name in written)


def _files(target: Target) -> set[str]:
    own = target.function.forward if target.function is not None else target.module or target.original
    code = getattr(inspect.unwrap(own) if callable(own) else own, "__code__", None)
    return {name for name in (target.path, code.co_filename if code is not None else None) if name}
