"""The one place that decides: from what was found, how much a finding weighs and what becomes of the subject.

A run away from the user's inputs has a kind, what happened there is an outcome, and both together give a severity.
Nothing else changes a verdict: rules say what they saw, and what that means for an examination stands in their files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from gradsmith.catalog import find, for_event
from gradsmith.findings import Finding, Report, Severity, Subject

_WORST_FIRST = ("refuted", "unverified", "skipped", "verified")


def unverified(name: str, reason: str, path: str | None = None, line: int | None = None, **more: Any) -> Subject:
    """A subject of which nothing was proved, and why."""
    return Subject(name, "unverified", reason, path, line, **more)


def unproven(report: Report, reason: str) -> Report:
    """The same report, whose subjects are not verified after all."""
    return replace(report, subjects=[replace(s, verdict="unverified", reason=reason) for s in report.subjects])


def measured(name: str, path: str | None, line: int | None, **more: Any) -> Subject:
    """The subject of a profile: nothing was to be proved, and it ran."""
    return Subject(name, "verified", "measured", path, line, **more)


def worst(subjects: Iterable[Subject]) -> Subject:
    """Of one subject's verdicts on several examples, the one that counts."""
    return min(subjects, key=lambda s: _WORST_FIRST.index(s.verdict))


def on_one_example(subject: Subject, trouble: str) -> Subject:
    """The verdict before findings are weighed: `trouble` says why the examination proves nothing."""
    return replace(subject, reason=trouble, verdict="unverified" if trouble else "verified")


def settled(subject: Subject, findings: Sequence[Finding]) -> Subject:
    """The verdict once the findings are known: an error refutes; what leaves the gradient unmeasured proves nothing."""
    mine = [f for f in findings if f.function == subject.name or "check" in f.lenses]
    errors = [f for f in mine if f.severity == "error" and f.blame == "user" and find(f.rule).refutes]
    if errors:
        names = ", ".join(dict.fromkeys(f.rule for f in errors))
        return replace(subject, verdict="refuted", reason=names)
    seen = [g for f in mine for g in (f, *f.symptoms) if "check" in g.lenses]
    reason = next((reason for f in seen if (reason := find(f.rule).unproven)), "")
    if not reason and subject.verdict == "verified":  # "right under an assumption" needs a gradient that was judged
        reason = next((reason for f in seen if (reason := f.evidence.get("unproven", ""))), "")
    return replace(subject, verdict="unverified", reason=reason) if reason else subject


def ignored(shown: Subject, whole: Subject) -> Subject:
    """The verdict where comments hide findings: what they hide proves nothing any more, and still is not verified.

    `shown` is the verdict on what is shown, `whole` the one on everything. The author knows of it: it does not count again.
    """
    if whole.verdict == shown.verdict:
        return shown
    reason = f"{whole.reason}, which a comment ignores"
    return replace(shown, verdict="unverified", reason=reason, known=shown.verdict == "verified")


def stopped(findings: Iterable[Finding], what: str) -> bool:
    """Whether something was found after which `what` (measuring, everything) cannot be done."""
    return any(find(f.rule).stops == what for f in findings)


# What to do about a subject that was not checked, by what happened to it.
_NEXT = {
    "crash": "Run a script of yours that calls it with `python -X faulthandler SCRIPT.py`: if a signal ends the process, Python prints "
    "the line. Nothing is known about the gradient.",
    "time": "Give smaller example inputs, or more CPU time with `--timeout SECONDS`. Nothing is known about the gradient.",
    "memory": "Give smaller example inputs, or more memory with `--memory-limit`. Nothing is known about the gradient.",
    "import": "Make the file importable here, or replace a missing module by a stand-in with `--stub NAME`. `gradsmith lint` "
    "needs no import.",
}


def _next(event: str, died: int | None) -> str | None:
    """What to do; the line that was running is the place to look, where it is known."""
    if died is None or event == "memory":
        return _NEXT.get(event)
    if event == "time":
        return f"If the loop around line {died} can be endless, correct it. Otherwise: {_NEXT[event][0].lower()}{_NEXT[event][1:]}"
    return f"Look at what line {died} calls, and at what it is given: it ends the process. Nothing is known about the gradient."


def unrun(
    event: str,
    name: str,
    where: str,
    line: int | None,
    reason: str,
    severity: Severity | None = None,
    *,
    died: int | None = None,
) -> Report:
    """A subject that could not be examined: its file does not import, it crashed, hung or grew too large.

    `died` is the line that was running when its process was ended.
    """
    rule = for_event(event)
    found = Finding(
        f"gradsmith could not check {name}: {reason}.",
        function=name,
        path=where,
        line=died or line,
        column=0 if died is None else None,
        severity=severity or "",
        advice=_next(event, died),
    )
    subject = unverified(name, f"{rule.name}: {reason}", where, line)
    return Report(findings=[rule.stamped(found, "check")], subjects=[subject], functions=1)


Weight = Literal["error", "warning", "assumption", "info"]
# What a step away from the example weighs, by its kind: where the gradient is wrong or not finite, None, or backward raises.
_EXPLORED: dict[str, tuple[Weight, Weight, Weight]] = {
    "values": ("error", "error", "warning"),
    "branch": ("error", "error", "warning"),
    "clamp": ("assumption", "info", "info"),
    "named option": ("error", "error", "warning"),
    "invented option": ("assumption", "info", "info"),
    "gradient control": ("warning", "info", "info"),
    "size": ("error", "error", "info"),
    "ids": ("error", "error", "info"),
    "structure": ("assumption", "info", "info"),
    "requires grad": ("error", "info", "warning"),
    "state": ("warning", "info", "warning"),
}


def of_explored(kind: str, outcome: str, *, own: bool = False) -> Weight:
    """The table of the design. `own` means that an `assert` or `raise` of the subject itself made the exception.

    >>> of_explored("size", "wrong"), of_explored("structure", "wrong"), of_explored("values", "raises", own=True)
    ('error', 'assumption', 'info')
    """
    wrong, none, raises = _EXPLORED[kind]
    if outcome == "raises":
        return "info" if own else raises
    return none if outcome == "none" else wrong


def under_assumption(finding: Finding, *, accepted: bool) -> Finding:
    """What is wrong unless something holds: a warning, until somebody says that it holds."""
    return replace(finding, severity="info" if accepted else "warning")


def in_a_second_try(finding: Finding) -> Finding:
    """What a subject died of, and survived without: the rest of it could be judged."""
    return replace(finding, severity="warning")


def outcomes(report: Report) -> set[str]:
    """What the findings of a report, symptoms among them, say about the gradient."""
    return {find(g.rule).outcome for f in report.findings for g in (f, *f.symptoms)} - {""}


def accused_on_guess(report: Report, reason: str, *, proven: bool) -> Report:
    """A wrong number on guessed inputs that are not what the author means: a remark if it is right on others.

    Where nothing shows that it is ever right, it is a warning; either way nothing is proved, and the reader is asked.
    """
    severity: Severity = "info" if proven else "warning"

    def weighed(finding: Finding) -> Finding:
        if "wrong" not in {find(f.rule).outcome for f in (finding, *finding.symptoms)}:
            return finding
        return replace(finding, severity=severity, advice=f"Inputs were guessed: {reason}.")

    findings = [weighed(f) for f in report.findings]
    report = replace(report, findings=findings)
    if any(f.severity == "error" and f.blame == "user" for f in findings):
        return report
    return unproven(report, reason)


def doubted_on_guess(report: Report, explained: Callable[[Finding], bool]) -> Report:
    """A wrong number on guessed inputs is an error where it is `explained`: a mistake is named, or a repair is proved.

    Any other may be what the guess breaks, or another gradient than the derivative, on purpose: the reader is asked. So is a
    number that is wrong a step away from the guess, where it is right.
    """
    doubted = [f.severity == "error" and _is_number(f) and not explained(f) for f in report.findings]
    if not any(doubted):
        return report
    question = " The inputs were guessed. Declare inputs that you mean: if it is wrong there, too, it is an error."
    findings = [
        replace(f, severity="warning", advice=f"{f.advice or ''}{question}".strip()) if doubt else f
        for f, doubt in zip(report.findings, doubted)
    ]
    report = replace(report, findings=findings)
    if any(f.severity == "error" and f.blame == "user" for f in findings):
        return report
    return unproven(
        report, "the gradient differs from the derivative on guessed inputs, and no known mistake explains it"
    )


def _is_number(finding: Finding) -> bool:
    """Whether a finding says that a gradient is another number than it should be, at the example or a step away from it."""
    return find(finding.rule).outcome in ("wrong", "nonlinear") or finding.evidence.get("status") == "wrong"


def gone_on_another_guess(report: Report, gone: set[str], reason: str) -> Report:
    """What a rule saw on a guess, and does not see where the guess is better, is a remark."""

    def weighed(finding: Finding) -> Finding:
        if finding.rule not in gone or finding.severity != "error":
            return finding
        return replace(finding, severity="info", advice=f"Inputs were guessed: {reason}.")

    report = replace(report, findings=[weighed(f) for f in report.findings])
    return report if any(f.severity == "error" for f in report.findings) else unproven(report, reason)


def shapes_on_guess(report: Report, *, several: bool, raising_proves_nothing: Callable[[Finding], bool]) -> Report:
    """Shapes that do not fit, on a guess: forward may only have been too lenient with it."""
    found = outcomes(report)
    # With too few gradients PyTorch takes none of them, so that no guess could be fitted to their shapes.
    miscounted = "count" in found

    def weighed(finding: Finding) -> Finding:
        outcome = find(finding.rule).outcome
        unfitted = outcome == "shape" and several and miscounted
        if unfitted or outcome in ("unreduced", "forward raises"):
            return replace(finding, severity="info")
        if outcome == "raises" and raising_proves_nothing(finding):
            return replace(finding, severity="info")  # the verdict says it: unverified
        return finding

    findings = [weighed(f) for f in report.findings]
    doubted = [f for f, g in zip(findings, report.findings) if find(f.rule).outcome == "raises" and f is not g]
    report = replace(report, findings=findings)
    if not doubted or any(f.severity == "error" for f in findings):
        return report
    return unproven(report, "backward raises on the guessed inputs; declare inputs to say what is meant")


def perhaps_no_tensor(finding: Finding, guessed: Callable[[str], bool]) -> Finding:
    """That the argument is a tensor is all our own idea: what is only true of tensors is a remark then."""
    if not find(finding.rule).needs_tensor or "lint" in finding.lenses or finding.argument is None:
        return finding
    return replace(finding, severity="info") if guessed(finding.argument) else finding


def waiting(report: Report, calls: Mapping[tuple[str, str], tuple[str, ...]]) -> Report:
    """A Function that calls a refuted one of its file cannot be judged before that one is mended.

    `calls` has for each (real path of the file, name) the names that it calls there: other files may have the same names.
    """
    files = {subject.path: os.path.realpath(subject.path or "") for subject in report.subjects}
    refuted = {(files[s.path], s.name) for s in report.subjects if s.verdict == "refuted"}
    subjects = []
    for subject in report.subjects:
        here = files[subject.path]
        broken = [callee for callee in calls.get((here, subject.name), ()) if (here, callee) in refuted]
        subjects.append(waiting_for(subject, broken) if broken else subject)
    return replace(report, subjects=subjects)


def waiting_for(subject: Subject, broken: Sequence[str]) -> Subject:
    """The subject as it stands while Functions that it calls are wrong."""
    which = "which is wrong; fix that first" if len(broken) == 1 else "which are wrong; fix those first"
    return replace(subject, verdict="unverified", reason=f"not checked: it calls {', '.join(broken)}, {which}")


def once_each(report: Report) -> Report:
    """One subject for each Function: one that was checked by itself, and met in others, has the worst of the verdicts.

    What a guess suggests does not count beside inputs that it was really given.
    """
    grouped: dict[Hashable, list[Subject]] = {}
    for subject in report.subjects:
        grouped.setdefault((subject.name, subject.path, subject.line), []).append(subject)
    kept = []
    for several in grouped.values():
        real = [s for s in several if s.inputs_from not in ("guessed", "none")]
        kept.append(several[0] if len(several) == 1 else worst(real or several))
    return replace(report, subjects=kept)
