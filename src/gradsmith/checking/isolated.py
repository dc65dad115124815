"""Check subjects in processes of their own, and say what became of those that did not survive."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from gradsmith.catalog import for_event
from gradsmith.checking import verdict
from gradsmith.checking.options import Options
from gradsmith.findings import Finding, GradsmithError, Report, Severity, Skipped
from gradsmith.lab.process import run_folder
from gradsmith.lab.process.isolation import Ended, Limits, Opened, Zygote
from gradsmith.lab.process.spawning import new_zygote
from gradsmith.lab.subject.importing import without_remedy

WORKER = "gradsmith.checking.worker"


@dataclass
class Job:
    """Subjects of one file or module, as they travel to the zygote: names, never objects."""

    path: str | None
    module: str | None
    subjects: list[tuple[str, int | None]]
    stubs: list[str] = field(default_factory=list)
    inputs: str | None = None
    tensors: str | None = None
    device: str | None = None
    whole: bool = False  # no subject was singled out: what the module declares inputs for is a subject, too

    @property
    def where(self) -> str:
        return self.path or self.module or ""


class Done(NamedTuple):
    """One subject that is done: its report, and what its process saw of the outside world (nothing, where it died)."""

    name: str
    line: int | None
    report: Report
    seen: Mapping[str, Any] = {}


def reports(zygote: Zygote, job: Job, options: dict[str, Any]) -> Iterator[Done]:
    """The subjects of a file, one by one, as they are finished."""
    subjects = list(job.subjects)
    opened = zygote.open(job.path, job.module, job.stubs, [name for name, _ in subjects])
    if opened.trouble and not opened.instead:
        yield from (Done(name, line, _not_imported(job, name, line, opened.trouble)) for name, line in subjects)
        return
    known = {name.rpartition(".")[2] for name, _ in subjects}
    subjects += [(name, None) for name in opened.declared if job.whole and name.rpartition(".")[2] not in known]
    if opened.malformed and not subjects:
        yield Done("", None, Report(skipped=[Skipped(job.where, opened.malformed)]))
    for name, line in subjects:
        done = _done(zygote, job, name, line, options)
        yield done._replace(report=_opened_otherwise(done.report, opened)) if opened.instead else done
    zygote.close()


def check_isolated(fn: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Report:
    """`gs.check(..., isolate=True)`: subject and functions travel by name; given tensors through a private file."""
    from gradsmith.lab.subject.target import resolve

    target = resolve(fn)
    subject = target.function or target.original
    if target.path is None or not Path(target.path).is_file() or not isinstance(subject, type):
        raise GradsmithError(f"isolate=True needs a class in a file; {target.name} cannot be found by name elsewhere")
    chosen = options.as_json()
    with run_folder.part() as folder, new_zygote(Limits(), WORKER) as zygote:
        job = Job(target.path, None, [(subject.__qualname__, target.line)])
        if inputs or kwargs:
            job.tensors = str(folder / "inputs.pt")
            _store([list(inputs), kwargs], job.tensors)
        (done,) = reports(zygote, job, chosen)
        return done.report


def _store(inputs: list[Any], path: str) -> None:
    """Write what the worker will read; what it would refuse to read is refused here."""
    import torch

    try:
        torch.save(inputs, path)
        torch.load(path, weights_only=True)
    except Exception as error:  # pickle has many ways to say no
        raise GradsmithError(
            "isolate=True runs in another process, and only tensors and plain values travel there as inputs; declare "
            "these with gradsmith_inputs in the file of the class, or leave out isolate=True"
        ) from error


def _done(zygote: Zygote, job: Job, name: str, line: int | None, options: dict[str, Any]) -> Done:
    ended = zygote.ask(
        subject=name,
        line=line,
        path=job.path,
        inputs=job.inputs,
        tensors=job.tensors,
        device=job.device,
        options=options,
    )
    if ended.result is not None:
        try:
            return Done(name, line, Report.from_dict(ended.result), ended.result.get("seen", {}))
        except (KeyError, TypeError, ValueError, AttributeError):
            ended = Ended(None, "crash", "what it sent is not a report")
    at = next(
        ((n, fn) for path, n, fn in ended.frames if job.path and os.path.realpath(path) == os.path.realpath(job.path)),
        None,
    )
    if at is not None:
        where = f"; line {at[0]} ({at[1]}) was running" if ended.event == "time" else f" in line {at[0]} ({at[1]})"
        ended = replace(ended, words=f"{ended.words}{where}")
    died = at[0] if at is not None else None
    if ended.event == "crash" and options.get("level") != "quick":
        if options.get("empty", True):
            gentle, without = {**options, "empty": False}, "of size 0"
        else:
            gentle, without = {**options, "level": "quick"}, "other than the example's"
        survived = _survived(_done(zygote, job, name, line, gentle).report, ended.words, without, died)
        return Done(name, line, survived)
    if ended.guessing:
        # Nobody asked for these values, and what they did to a kernel says nothing about it.
        reason = f"{ended.words} on guessed inputs (declare inputs that fit)"
        return Done(name, line, verdict.unrun(ended.event, name, job.where, line, reason, "warning", died=died))
    return Done(name, line, verdict.unrun(ended.event, name, job.where, line, ended.words, died=died))


def _not_imported(job: Job, name: str, line: int | None, reason: str) -> Report:
    # A package that is missing here is no fault of the Function.
    report = verdict.unrun("import", name, job.where, line, reason, "warning" if "not installed" in reason else None)
    if "imports triton" not in reason:
        return report
    untried = {"triton interpreter": "not tried: triton is not installed"}
    return replace(report, subjects=[replace(s, conditions=untried) for s in report.subjects])


def _opened_otherwise(report: Report, opened: Opened) -> Report:
    """With a word about how the file was opened, since it does not import where it stands."""
    (subject,) = report.subjects
    # Where something was proved, what is missing was not needed for it.
    settled = subject.verdict != "unverified"
    trouble = without_remedy(opened.trouble)  # a stand-in is there already
    needed = " The check never used the stand-in." if settled and "not installed" in trouble else ""
    message = f"The file of {subject.name} cannot be imported here: {trouble}. Therefore {opened.instead}.{needed}"
    at = re.match(r"line (\d+) (?!of )", trouble)
    severity: Severity = (
        "info" if "not installed" in opened.trouble else "warning"
    )  # a missing package is nobody's fault
    finding = Finding(
        message,
        function=subject.name,
        path=subject.path,
        line=int(at[1]) if at is not None else subject.line,
        column=0,
        severity=severity,
        advice=_import_advice(opened.trouble, settled),
    )
    return replace(report, findings=[*report.findings, for_event("import").stamped(finding, "check")])


def _import_advice(trouble: str, settled: bool) -> str:
    if "not installed" in trouble:
        missing = trouble.partition(" imports ")[2].partition(",")[0]
        install = f"install {missing} here" if missing else "install it here"
        return (
            f"There is nothing to do. To check with the real package, {install}."
            if settled
            else f"{install.capitalize()}, and check again."
        )
    return "Correct what the import raises" + (", if your users meet it, too." if settled else ", and check again.")


def _survived(report: Report, death: str, without: str, died: int | None) -> Report:
    """A second try without some tensors; if that one lives, they were what the subject died of."""
    rule = for_event("crash")
    if any(f.rule == rule.name for f in report.findings):
        return report
    subject = report.subjects[0]
    message = (
        f"{subject.name} ended the process that ran it ({death}). It was checked again without tensors {without}, and that "
        "went well."
    )
    finding = Finding(
        message,
        function=subject.name,
        path=subject.path,
        line=died or subject.line,
        column=0,
        advice=f"Look at what compiled code does with tensors {without}, or refuse them in forward with an exception.",
    )
    return replace(report, findings=[*report.findings, verdict.in_a_second_try(rule.stamped(finding, "check"))])
