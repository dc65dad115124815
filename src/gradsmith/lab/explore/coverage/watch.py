"""One run of the subject, seen from both sides: its tape and its lines."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from itertools import chain
from types import CodeType

import torch

from gradsmith.lab.explore.coverage.bytecode import numbers_without, shape_of
from gradsmith.lab.explore.coverage.choices import choices
from gradsmith.lab.explore.coverage.point import Point, SidesTaken
from gradsmith.lab.explore.coverage.subject_code import code_of, codes_of
from gradsmith.lab.explore.coverage.tracing import ROUNDS, InstructionTrace, tracing
from gradsmith.lab.explore.coverage.untakable import untakable
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.lab import Lab, cast_target
from gradsmith.lab.once import once
from gradsmith.lab.run import Allowance, Spent, forward, recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target, backward_of
from gradsmith.source.expressions import written

_READS = frozenset({"_local_scalar_dense", "is_nonzero", "equal"})  # a number leaves torch: Python may decide by it


Row = tuple[Point, bool, frozenset[int]]


@once
def own_codes(lab: Lab) -> frozenset[CodeType]:
    return frozenset(codes_of(lab))


@once
def own_backward(lab: Lab) -> CodeType | None:
    """The code of the subject's backward, if it is a Function."""
    return code_of(backward_of(lab.target.function)) if lab.target.function is not None else None


@once
def _met(lab: Lab) -> set[CodeType]:
    """What was traced so far: a function that runs for the first time is always of interest."""
    return set()


def watched_run(
    lab: Lab, arguments: Arguments, *, lines: bool = True, operations: bool = True, only: Collection[int] | None = None
) -> SidesTaken:
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
    return SidesTaken(frozenset(taken), possible)


def _rows(
    lab: Lab, arguments: Arguments, lines: bool, operations: bool, only: Collection[int] | None
) -> Iterator[Iterator[Row]]:
    known, met, path = own_codes(lab), _met(lab), lab.target.path
    read: dict[int, frozenset[int]] = {}

    def own(code: CodeType) -> bool:
        mine = code in known or code.co_filename == path
        return mine and (only is None or code not in met or not shape_of(code).numbers.isdisjoint(only))

    chosen = frozenset(code for code in known if own(code)) if lines else frozenset()
    trace: InstructionTrace | None = None
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
            yield _of_python(lab, trace, chosen, read)


def forward_alone(lab: Lab) -> SidesTaken:
    """The lines that forward takes where no input requires a gradient: it may ask, and has no backward then."""
    return _lines_of(lab, lab.precise[0], lab.precise[1].only(set()))


def in_precision(lab: Lab, dtype: torch.dtype) -> SidesTaken:
    """The lines that a run in another precision takes."""
    return _lines_of(lab, cast_target(lab.target, dtype), lab.arguments.cast(dtype))


def _lines_of(lab: Lab, target: Target, arguments: Arguments) -> SidesTaken:
    known, path = own_codes(lab), lab.target.path
    with (
        Allowance(4, reserved=True),
        tracing(lambda code: code in known or code.co_filename == path, set(known)) as trace,
    ):
        _run(lab, arguments, target)
    rows = list(_of_python(lab, trace, known, {}))
    return SidesTaken(
        frozenset(point for point, took, _ in rows if took), {point: origins for point, _, origins in rows}
    )


def _several_outputs(lab: Lab) -> bool:
    """Whether backward can be asked for outputs one by one; where nothing was judged, that is tried."""
    try:
        return len(lab.gradient.run.differentiable) > 1
    except (Exception, Spent):  # backward raises, forward does a step away, or it takes too many runs
        return True


def _run(lab: Lab, arguments: Arguments, target: Target | None = None) -> None:
    """Backward is asked for all outputs, and for each alone: it may treat one that nobody uses apart."""
    with contextlib.suppress(Exception):  # what it ran until then counts
        run = forward(target or lab.precise[0], arguments, seed=lab.settings.seed)
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
    lab: Lab, trace: InstructionTrace, known: frozenset[CodeType], read: dict[int, frozenset[int]]
) -> Iterator[Row]:
    nothing: frozenset[int] = frozenset()
    path, backward = lab.target.path, own_backward(lab)
    for code in known | trace.lines.keys():
        shape, ran = shape_of(code), trace.lines.get(code, set())
        elsewhere = code.co_filename if path is not None and code.co_filename != path else ""
        never = _never(lab, code) if code is backward else frozenset()
        numbers = numbers_without(code, never) if never else shape.numbers
        for line in numbers:
            yield Point(line, "line", path=elsewhere), line in ran, nothing
        for start, jump in shape.jumps.items():
            if jump.line not in numbers:
                continue
            origins = read.get(jump.line, nothing)
            if jump.loop:
                counted = {how for c, line, how in trace.rounds if c is code and line == jump.line}
                for how in ROUNDS if jump.varies else ():
                    yield Point(jump.line, "loop", "", how, path=elsewhere), how in counted, nothing
            else:
                for to, side in (step for step in jump.sides if (start, step[0]) not in never):
                    point = Point(jump.line, "test", jump.what, side, path=elsewhere)
                    yield point, (code, start, to) in trace.jumps, origins


def _never(lab: Lab, code: CodeType) -> frozenset[tuple[int, int]]:
    """The steps in the subject's backward that no run makes."""
    return frozenset(
        (start, to)
        for start, jump in shape_of(code).jumps.items()
        if not jump.loop
        for to, side in jump.sides
        if side in untakable(lab, jump)
    )


def _of_operations(tape: OperationTape, path: str | None) -> Iterator[Row]:
    for phase in ("forward", "backward"):
        for choice in choices(tape.aten(None, phase)):
            op = choice.operation
            line = op.line or 0
            what = (written(path, line, op.name) if path is not None else "") or op.name
            for side, took in choice.sides.items():
                yield Point(line, "operation", what, side, phase), took, choice.origins
