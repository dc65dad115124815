"""Recorded nn.Modules: the live instances in which custom Functions ran, checked on what they were called with."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.checking.options import Options
from gradsmith.checking.run import examine
from gradsmith.findings import Report
from gradsmith.folding import together
from gradsmith.inputs.recorded import constructed, of_modules
from gradsmith.inputs.scaling import elements
from gradsmith.lab.explore.questions import leaves_the_graph
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.process.state import preserved
from gradsmith.lab.run import Spent
from gradsmith.lab.subject.target import resolve, short_name

if TYPE_CHECKING:
    from gradsmith.recording.modules import ModuleCall
    from gradsmith.recording.tape import Tape

_LARGEST = 1 << 20  # parameters and inputs of one module; a check runs it a few hundred times


def check_modules(tape: Tape, functions: Report, options: Options) -> Report:
    """The report on the tape's Functions, with a subject for each class of modules that was verified or refuted.

    A module proves more than its Functions do (what it does around them), but nobody asked for it by name: where nothing
    can be proved of it, a note says why, and the verdict on the Functions stands.
    """
    exact = {s.name for s in functions.subjects if s.verdict == "verified" and s.gradient == "exact"}
    total = functions
    for calls in _by_class(tape):
        try:
            report = _checked(calls, exact, options)
        except Spent:
            report = Report(notes=[f"{calls[0].name}: not checked as a whole: the time for it was spent"])
        total = together(total, report) if report.subjects else replace(total, notes=[*total.notes, *report.notes])
    return total


def _checked(calls: list[ModuleCall], exact: set[str], options: Options) -> Report:
    call = calls[0]
    said = f"{call.name}: {constructed(calls)}"
    unproved = [name for cls in call.functions if (name := short_name(cls)) not in exact]
    if unproved:
        words = f"the gradient of {', '.join(unproved)}, which it runs, is not verified to be exact"
        return Report(notes=[f"{said}; not checked as a whole: {words}"])
    size = elements((call.args, call.kwargs, list(call.module.parameters())))
    if size > _LARGEST:
        return Report(notes=[f"{said}; not checked as a whole: {size:,} parameters and inputs take too long"])
    report = examine(resolve(type(call.module)), of_modules(calls), options)
    verdict, reason = report.subjects[0].verdict, report.subjects[0].reason
    if verdict == "unverified":
        return Report(notes=[f"{said}; not verified as a whole: {reason}"])
    if verdict == "refuted" and (cut := _cuts(call)):
        words = f"its gradient is not that of its forward, which calls {cut}; gs.check({call.name}) says more"
        return Report(notes=[f"{said}; not judged as a whole: {words}"])
    return report


def _cuts(call: ModuleCall) -> str:
    tape = OperationTape(calls_only=True)
    with preserved(call.args, call.module), tape, contextlib.suppress(Exception):
        call.module(*call.args, **call.kwargs)
    return ", ".join(leaves_the_graph(tape))


def _by_class(tape: Tape) -> list[list[ModuleCall]]:
    grouped: dict[type, list[ModuleCall]] = {}
    for call in tape.modules:
        grouped.setdefault(type(call.module), []).append(call)
    return list(grouped.values())
