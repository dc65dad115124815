"""How the loops of forward ended: had what they carry come to rest, and how much did they leave undone?

One forward runs under `sys.settrace`. In the code of the subject's own file or package, the tensors that a loop carries from one pass
to the next are compared over its last two passes. Loops are found in the bytecode: they are its jumps backwards.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.source.module_names import package_name

AT_REST = 1e-6  # the change in the last pass, as a share of the largest value that the tensor had
_SETTLING = 1e-2  # a loop whose last pass changes so much less than its largest one is on the way to a limit
_SLOWEST = 0.9999
_SLACK = 4.0
Place = tuple[str, int]  # the name of the code and the line of the loop


@dataclass(frozen=True)
class Ending:
    """How a loop ended: the change in its last pass (the largest, if it ran several times), whether it ran to the end of
    what it iterates over, and how far its result may be from the limit that it was on the way to, as a share of it."""

    change: float
    exhausted: bool
    undone: float = 0.0

    def worse(self, other: Ending) -> Ending:
        change, undone = max(self.change, other.change), max(self.undone, other.undone)
        return Ending(change, self.exhausted or other.exhausted, undone)


def converged(target: Target, arguments: Arguments, seed: int) -> bool | None:
    """Whether every loop of forward had come to rest; None where no loop carries a tensor."""
    found = endings(target, arguments, seed)
    return all(e.change <= AT_REST for e in found.values()) if found else None


def left_undone(target: Target, arguments: Arguments, seed: int) -> float:
    """How far forward may be from the limits that its loops were on the way to, as a share of them; 0 without such a loop.

    Backward of a fixed point or a solver is the derivative of the limit. It differs from that of the passes that were made
    by about this much, and by no more.
    """
    return max((e.undone for e in endings(target, arguments, seed).values()), default=0.0)


def endings(target: Target, arguments: Arguments, seed: int) -> dict[Place, Ending]:
    """How the loops of one forward ended; empty where forward raises."""
    watch = _Watch(_places(target))
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
    largest: float = 0.0  # change in a pass
    last: float = 0.0  # change that was one: who tests first, and then leaves, changes nothing in the last pass
    count: int = 0

    def note(self, values: dict[str, Tensor]) -> None:
        self.before, self.now = self.now, values
        for name, tensor in values.items():
            self.peak[name] = max(self.peak.get(name, 0.0), _largest(tensor))
        if change := self.change:
            self.last, self.largest, self.count = change, max(self.largest, change), self.count + 1

    @property
    def undone(self) -> float:
        """What passes after the last one would still have changed: a geometric series, whose derivative has one factor
        for each pass. 0 where nothing was on the way to rest."""
        if not 0 < self.last <= _SETTLING * self.largest:
            return 0.0
        rate = min(float((self.last / self.largest) ** (1 / (self.count - 1))), _SLOWEST)
        return _SLACK * self.count * self.last / (1 - rate)

    @property
    def change(self) -> float | None:
        """How far the last pass moved what is carried; None where nothing can be compared."""
        both = [n for n in self.now if n in self.before and self.now[n].shape == self.before[n].shape]
        if not both:
            return None
        return max(_largest(self.now[n] - self.before[n]) / max(self.peak[n], 1e-300) for n in both)


class _Watch:
    """Follows the frames of some files and folders, line by line."""

    def __init__(self, places: tuple[str, ...]) -> None:
        self.places = places
        self.found: dict[Place, Ending] = {}

    def follow(self, frame: FrameType) -> _InFrame | None:
        code = frame.f_code
        return _InFrame(self, _loops(code)) if code.co_filename.startswith(self.places) and _loops(code) else None


class _InFrame:
    def __init__(self, watch: _Watch, loops: tuple[_Loop, ...]) -> None:
        self.watch, self.loops = watch, loops
        self.running: dict[_Loop, _Passes] = {}
        self.line = 0

    def see(self, frame: FrameType, event: str) -> None:
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
            place, ending = (frame.f_code.co_name, loop.head), Ending(change, exhausted, passes.undone)
            self.watch.found[place] = ending.worse(self.watch.found.get(place, ending))


@contextmanager
def _traced(watch: _Watch) -> Iterator[None]:
    """Trace the calls of this thread. A debugger, or whoever else traces, sees them as well and is put back."""
    theirs = sys.gettrace()

    def called(frame: FrameType, event: Any, arg: Any) -> Any:
        local = theirs(frame, event, arg) if theirs is not None else None
        mine = watch.follow(frame)
        if mine is None:
            return local

        def each_line(frame: FrameType, event: Any, arg: Any) -> Any:
            nonlocal local
            local = local(frame, event, arg) if local is not None else None
            mine.see(frame, event)
            return each_line

        return each_line

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


def _places(target: Target) -> tuple[str, ...]:
    """The subject's own files; of a file in a package, all of the package: solvers stand in files of their own."""
    own = target.function.forward if target.function is not None else target.module or target.original
    code = getattr(inspect.unwrap(own) if callable(own) else own, "__code__", None)
    files = {name for name in (target.path, code.co_filename if code is not None else None) if name}
    return tuple(sorted(_package(name) or name for name in files))


def _package(file: str) -> str:
    """The folder of the outermost package that a file stands in, with a separator at its end; empty for torch's own."""
    path = Path(file)
    if not path.is_file():  # a notebook's cell
        return ""
    folder, name = package_name(path)
    top, *inner = name.split(".")
    return str(folder / top) + os.sep if inner and top != "torch" else ""
