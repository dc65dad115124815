"""One run of the subject, seen from both sides: its tape and its lines."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from itertools import chain
from types import CodeType

import torch

from gradsmith.lab.explore.coverage.bytecode import shape_of
from gradsmith.lab.explore.coverage.choices import choices
from gradsmith.lab.explore.coverage.point import Point, Seen
from gradsmith.lab.explore.coverage.subject_code import codes_of
from gradsmith.lab.explore.coverage.tracing import ROUNDS, Trace, tracing
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import Allowance, forward, recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.source.expressions import written

_READS = frozenset({"_local_scalar_dense", "is_nonzero", "equal"})  # a number leaves torch: Python may decide by it


Row = tuple[Point, bool, frozenset[int]]


@once
def own_codes(lab: Lab) -> frozenset[CodeType]:
    return frozenset(codes_of(lab))


@once
def _met(lab: Lab) -> set[CodeType]:
    """What was traced so far: a function that runs for the first time is always of interest."""
    return set()


def watched_run(
    lab: Lab, arguments: Arguments, *, lines: bool = True, operations: bool = True, only: Collection[int] | None = None
) -> Seen:
    """What a forward and a backward on these arguments took. It is not charged to the budget of those who judge.

    `only` leaves out functions in which none of these lines stands: tracing costs several times the run of what it traces.

    Two runs, because under a tape most of what Python calls is the tape's: a tracer would be told of all of it.
    """
    taken: set[Point] = set()
    possible: dict[Point, frozenset[int]] = {}
    for point, took, origins in chain(*_rows(lab, arguments, lines, operations, only)):
        possible[point] = possible.get(point, frozenset()) | origins
        if took:
            taken.add(point)
    return Seen(frozenset(taken), possible)


def _rows(
    lab: Lab, arguments: Arguments, lines: bool, operations: bool, only: Collection[int] | None
) -> Iterator[Iterator[Row]]:
    known, met, path = own_codes(lab), _met(lab), lab.target.path
    read: dict[int, frozenset[int]] = {}

    def own(code: CodeType) -> bool:
        mine = code in known or code.co_filename == path
        return mine and (only is None or code not in met or not shape_of(code).numbers.isdisjoint(only))

    chosen = frozenset(code for code in known if own(code)) if lines else frozenset()
    trace: Trace | None = None
    with Allowance(4, reserved=True):
        with tracing(own, set(chosen)) if lines else contextlib.nullcontext() as trace:
            if operations:
                tape = recorded(lab.precise[0], arguments, lab.settings.seed, backward=True, aten_only=True)
            if lines and (not operations or _several_outputs(lab)):
                _run(lab, arguments)
        if operations:
            read = _read(tape)
            yield _of_operations(tape, path)
        if trace is not None:
            met.update(chosen, trace.lines)
            yield _of_python(trace, chosen, read, path)


def _several_outputs(lab: Lab) -> bool:
    """Whether backward can be asked for outputs one by one; where nothing was judged, that is tried."""
    try:
        return len(lab.gradient.run.differentiable) > 1
    except Exception:  # backward raises, or forward does a step away
        return True


def _run(lab: Lab, arguments: Arguments) -> None:
    """Backward is asked for all outputs, and for each alone: it may treat one that nobody uses apart."""
    with contextlib.suppress(Exception):  # what it ran until then counts
        run = forward(lab.precise[0], arguments, seed=lab.settings.seed)
        v = run.normal(torch.Generator().manual_seed(lab.settings.seed))
        run.gradients(v)
        for output in v if len(v) > 1 else ():
            run.gradients({output: v[output]})


def _read(tape: OperationTape) -> dict[int, frozenset[int]]:
    """For each line the inputs that a number derives from which Python was given there."""
    found: dict[int, frozenset[int]] = {}
    for phase in ("forward", "backward"):
        for op in tape.aten(_READS, phase):
            if op.line is not None:
                found[op.line] = found.get(op.line, frozenset()) | op.origins
    return found


def _of_python(
    trace: Trace, known: frozenset[CodeType], read: dict[int, frozenset[int]], path: str | None
) -> Iterator[Row]:
    nothing: frozenset[int] = frozenset()
    for code in known | trace.lines.keys():
        shape, ran = shape_of(code), trace.lines.get(code, set())
        elsewhere = code.co_filename if path is not None and code.co_filename != path else ""
        for line in shape.numbers:
            yield Point(line, "line", path=elsewhere), line in ran, nothing
        for start, jump in shape.jumps.items():
            origins = read.get(jump.line, nothing)
            if jump.loop:
                counted = {how for c, line, how in trace.rounds if c is code and line == jump.line}
                for how in ROUNDS if jump.varies else ():
                    yield Point(jump.line, "loop", "", how, path=elsewhere), how in counted, nothing
            else:
                for to, side in jump.sides:
                    point = Point(jump.line, "test", jump.what, side, path=elsewhere)
                    yield point, (code, start, to) in trace.jumps, origins


def _of_operations(tape: OperationTape, path: str | None) -> Iterator[Row]:
    for phase in ("forward", "backward"):
        for choice in choices(tape.aten(None, phase)):
            op = choice.operation
            line = op.line or 0
            what = (written(path, line, op.name) if path is not None else "") or op.name
            for side, took in choice.sides.items():
                yield Point(line, "operation", what, side, phase), took, choice.origins
