"""Which instructions of the subject's own code ran: by `sys.monitoring` where Python has it, by `sys.settrace` elsewhere.

Another tracer (a debugger, coverage.py) goes on tracing meanwhile, and is put back afterwards.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from gradsmith.lab.explore.coverage.bytecode import shape_of

_NAME = "gradsmith"


@dataclass
class InstructionTrace:
    """What ran of the code that is `own`."""

    own: Callable[[CodeType], bool]
    lines: dict[CodeType, set[int]] = field(default_factory=dict)
    jumps: set[tuple[CodeType, int, int]] = field(default_factory=set)  # from which offset to which
    rounds: set[tuple[CodeType, int, str]] = field(default_factory=set)  # the line of a loop, and how often it ran
    _counts: dict[tuple[int, CodeType, int], int] = field(default_factory=dict)  # of loops that are running, by frame

    def line(self, code: CodeType, number: int) -> None:
        self.lines.setdefault(code, set()).add(number)

    def went(self, frame: int, code: CodeType, start: int, to: int) -> None:
        """A conditional jump was decided."""
        jump = shape_of(code).jumps.get(start)
        if jump is None or to not in (offset for offset, _ in jump.sides):
            return
        self.jumps.add((code, start, to))
        if jump.loop:
            key = (frame, code, jump.line)
            self._counts[key] = self._counts.get(key, 0)
            if to == jump.sides[0][0]:
                self._counts[key] += 1
            else:
                self._over(key)

    def left(self, frame: int, code: CodeType) -> None:
        """A function returned: loops that it was in are over."""
        for key in [k for k in self._counts if k[:2] == (frame, code)]:
            self._over(key)

    def _over(self, key: tuple[int, CodeType, int]) -> None:
        count = self._counts.pop(key)
        self.rounds.add((key[1], key[2], ROUNDS[min(count, 2)]))


ROUNDS = ("0 times", "exactly once", "more than once")


@contextlib.contextmanager
def tracing(own: Callable[[CodeType], bool], known: set[CodeType]) -> Iterator[InstructionTrace]:
    """Traces the code for which `own` says so while the block runs; `known` is that which is known beforehand."""
    trace = InstructionTrace(own)
    monitoring = getattr(sys, "monitoring", None)
    tool = _free_tool(monitoring) if monitoring is not None else None
    with _monitored(trace, monitoring, tool, known) if tool is not None else _traced(trace):
        yield trace


@contextlib.contextmanager
def _traced(trace: InstructionTrace) -> Iterator[None]:
    theirs = sys.gettrace()
    interpreter = _Interpreter(trace, theirs)
    sys.settrace(interpreter.called)
    try:
        yield
    finally:
        interpreter.active = False
        sys.settrace(theirs)


@dataclass
class _Interpreter:
    """Answers the interpreter's events, and passes them on to the tracer that was there before."""

    trace: InstructionTrace
    theirs: Any
    active: bool = True

    def called(self, frame: FrameType, event: str, arg: Any) -> Any:
        following = self._passed_on(self.theirs, frame, event, arg)
        if event != "call" or not self.trace.own(frame.f_code):
            return self._only_theirs(following) if following is not None else None
        frame.f_trace_opcodes = True
        return self._following(frame.f_code, id(frame), following)

    def _only_theirs(self, following: Any) -> Any:
        """For a frame that is not ours: theirs hears everything, and must not take our place."""

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal following
            following = self._passed_on(following, frame, event, arg)
            return local

        return local

    def _following(self, code: CodeType, number: int, following: Any) -> Any:
        shape = shape_of(code)
        lines, jumps, trace = shape.lines, shape.jumps, self.trace
        before = -1
        seen: set[int] = trace.lines.setdefault(code, set())

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal before, following
            if event == "opcode":
                at = frame.f_lasti
                if before in jumps:
                    trace.went(number, code, before, at)
                before = at
                if at in lines:
                    seen.add(lines[at])
                return local
            if event == "return":
                trace.left(number, code)
            if following is not None:
                following = self._passed_on(following, frame, event, arg)
            return local

        return local

    def _passed_on(self, tracer: Any, frame: FrameType, event: str, arg: Any) -> Any:
        if tracer is None:
            return None
        answer = tracer(frame, event, arg)
        if self.active and sys.gettrace() != self.called:  # coverage.py's tracer installs itself when it is called
            sys.settrace(self.called)
        return answer


def _free_tool(monitoring: Any) -> int | None:
    for number in (3, 4):  # those that no kind of tool is meant to have
        if monitoring.get_tool(number) is None:
            return number
    return None


@contextlib.contextmanager
def _monitored(trace: InstructionTrace, monitoring: Any, tool: int, known: set[CodeType]) -> Iterator[None]:
    """Python 3.12 and later: events of the code alone that is traced; other tools do not notice."""
    events = monitoring.events
    both = [getattr(events, name) for name in ("BRANCH_LEFT", "BRANCH_RIGHT") if hasattr(events, name)]
    branches = both or [events.BRANCH]
    wanted = events.LINE
    for event in branches:
        wanted |= event
    watched: list[CodeType] = []

    def watch(code: CodeType) -> None:
        if code not in watched:
            watched.append(code)
            trace.lines.setdefault(code, set())
            monitoring.set_local_events(tool, code, wanted)

    def started(code: CodeType, offset: int) -> Any:
        if trace.own(code):
            watch(code)
            return None
        return monitoring.DISABLE

    def on_line(code: CodeType, number: int) -> None:
        if number in shape_of(code).lines.values():
            trace.line(code, number)

    def on_branch(code: CodeType, offset: int, to: int) -> None:
        jump = shape_of(code).jumps.get(offset)
        if jump is not None:  # Python may step over an instruction that only marks the end of a loop
            nearest = min((place for place, _ in jump.sides), key=lambda place: abs(place - to))
            trace.went(_frame_of(code), code, offset, nearest)

    def on_return(code: CodeType, offset: int, value: Any) -> None:
        if code in watched:
            trace.left(_frame_of(code), code)

    calls = {events.PY_START: started, events.PY_RETURN: on_return, events.LINE: on_line}
    calls.update(dict.fromkeys(branches, on_branch))
    monitoring.use_tool_id(tool, _NAME)
    try:
        for event, call in calls.items():
            monitoring.register_callback(tool, event, call)
        for code in known:
            watch(code)
        monitoring.set_events(tool, events.PY_START | events.PY_RETURN)
        monitoring.restart_events()
        yield
    finally:
        monitoring.set_events(tool, 0)
        for code in watched:
            monitoring.set_local_events(tool, code, 0)
        for event in calls:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)


def _frame_of(code: CodeType) -> int:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return id(frame)
