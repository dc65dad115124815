"""Check what is on a tape: every Function on what it was really given, and the modules in which they ran."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradsmith.checking.notes import TIME
from gradsmith.checking.options import Options
from gradsmith.checking.recorded_modules import check_modules
from gradsmith.checking.run import OUT_OF_TIME, examine, unverified
from gradsmith.findings import Report, plural
from gradsmith.folding import together
from gradsmith.inputs.recorded import of_function
from gradsmith.lab.process.witness import INSTALLED, OURS
from gradsmith.lab.run import RunLimit, Spent
from gradsmith.lab.subject.target import resolve

if TYPE_CHECKING:
    from gradsmith.recording.tape import Tape


def check_tape(tape: Tape, *, budget: float | None = None, third_party: bool = True, **options: Any) -> Report:
    """One report on every Function of the tape; the first note says what ran.

    Within `budget` seconds, if there are any: see `check_functions`. Functions of installed packages are left out unless
    `third_party`.
    """
    total = Report(notes=[tape.summary()])
    start = time.monotonic()
    mine, others = own_functions(tape.functions, third_party=third_party)
    for report in check_functions(tape, mine, Options(**options), budget).values():
        total = together(total, report)
    left = None if budget is None else budget - (time.monotonic() - start)
    if tape.modules and (left is None or left > 0):
        with contextlib.nullcontext() if left is None else RunLimit(left):
            total = check_modules(tape, total, Options(**options))
    notes = [*total.notes, *([not_ours(others)] if others else [])]
    if budget is not None:
        notes.append(
            f"checked in {time.monotonic() - start:.0f} s of the {budget:.0f} s that checks may take (--budget)"
        )
    return replace(total, functions=len(mine), files=len({s.path for s in total.subjects}), notes=notes)


def check_functions(
    tape: Tape, functions: Sequence[type], options: Options, budget: float | None = None
) -> dict[type, Report]:
    """Each of these Functions on its recorded inputs, those that differ most first.

    With a budget, each gets an equal share of the time that is left, so that what one does not need goes to the next. Those
    whose runs are dear are first judged only; what is left then goes into all that was left out. What could not be tried is told.
    """
    if budget is None:
        return {cls: check_recorded(tape, cls, options) for cls in functions}
    until = time.monotonic() + budget
    found: dict[type, Report] = {}
    for first_look in (True, False):
        work = [cls for cls in functions if first_look or _is_open(found[cls])]
        for number, cls in enumerate(work):
            left = max(0.0, until - time.monotonic()) / (len(work) - number)
            if not first_look and not left:
                break
            with RunLimit(left, first_look=first_look):
                report = check_recorded(tape, cls, options)
            if first_look or not report.subjects[0].reason.endswith(OUT_OF_TIME):
                found[cls] = report
    return found


def _is_open(report: Report) -> bool:
    """Whether it was judged at a first look, and more is to be tried of it."""
    return any(s.measured.get("left out", {}).get("because") == TIME for s in report.subjects)


def check_recorded(tape: Tape, cls: type, options: Options) -> Report:
    """One Function on its recorded inputs, the ones that need a gradient and differ most first."""
    target = resolve(cls)
    try:
        report = examine(target, of_function(tape, target, options.seed), options)
    except Spent:
        return unverified(target, OUT_OF_TIME)
    return _of_others(report) if is_installed(cls) else report


def own_functions(functions: Sequence[type], *, third_party: bool) -> tuple[list[type], list[type]]:
    """The user's own, and those of installed packages that are left out."""
    others = [] if third_party else [cls for cls in functions if is_installed(cls)]
    return [cls for cls in functions if cls not in others], others


def is_installed(cls: type) -> bool:
    """Whether a class comes with an installed package, or with gradsmith itself."""
    path = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return os.path.realpath(path).startswith((*INSTALLED, OURS))


def not_ours(others: Sequence[type]) -> str:
    """A note on Functions of installed packages."""
    names = ", ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in others[:4])
    more = f" and {len(others) - 4} more" if len(others) > 4 else ""
    return f"{plural(len(others), 'Function')} of installed packages not checked (--third-party checks them): {names}{more}"


def _of_others(report: Report) -> Report:
    """Nobody should edit what a package manager installed: what to do is to tell the authors."""
    advice = "This is installed code: tell its authors, with the example of this report."
    return replace(report, findings=[replace(f, advice=advice, edits=(), applicability=None) for f in report.findings])
