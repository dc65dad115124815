"""Check what is on a tape: every Function on what it was really given, and the modules in which they ran."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradsmith.checking.options import Options
from gradsmith.checking.recorded_modules import check_modules
from gradsmith.checking.run import examine
from gradsmith.findings import Report
from gradsmith.folding import together
from gradsmith.inputs.recorded import of_function
from gradsmith.lab.subject.target import resolve

if TYPE_CHECKING:
    from gradsmith.recording.tape import Tape


def check_tape(tape: Tape, **options: Any) -> Report:
    """One report on every Function of the tape; the first note says what ran."""
    total = Report(notes=[tape.summary()])
    for cls in tape.functions:
        total = together(total, check_recorded(tape, cls, Options(**options)))
    if tape.modules:
        total = check_modules(tape, total, Options(**options))
    return replace(total, functions=len(tape.functions), files=len({s.path for s in total.subjects}))


def check_recorded(tape: Tape, cls: type, options: Options) -> Report:
    """One Function on its recorded inputs, the ones that need a gradient and differ most first."""
    target = resolve(cls)
    return examine(target, of_function(tape, target, options.seed), options)
