"""Check a subject on guessed inputs, and say so; where nothing worked, say what was tried and what to write."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from torch import Tensor

from gradsmith.checking import Options, declaration, examine, unverified
from gradsmith.findings import Finding, Report, Subject
from gradsmith.inputs.guess import Guess, guess
from gradsmith.inputs.guess.second_opinion import (
    definite_excuse,
    depends_on_a_guessed_function,
    implied_excuse,
    range_excuse,
    symmetric_excuse,
)
from gradsmith.lab.eager import uncompiled
from gradsmith.lab.stages import inputs_are_guessed
from gradsmith.lab.state import preserved
from gradsmith.lab.target import Target

_EXCUSES = (implied_excuse, symmetric_excuse, definite_excuse, range_excuse)
# Shapes that do not fit each other: with several tensors, the guess may be what does not fit.
_UNFIT = re.compile(r"shape|size|dimension|index \d+ is out of|must match|broadcast|expand", re.IGNORECASE)


def examine_guessed(target: Target, options: Options, device: Any = None) -> Report:
    """The report on guessed inputs, with the declaration that would keep them."""
    inputs_are_guessed()
    found = guess(target, seed=options.seed, device=device)
    if found.args is None:
        return unverified(target, f"no inputs worked ({_tried(found)}); write {declaration(target)}")
    with uncompiled():
        report = examine(target, [(found.args, found.kwargs)], "guessed", options)
    note = (
        f"{target.name}: inputs were guessed; keep or correct them: "
        f'gradsmith_inputs = {{"{target.name}": lambda: {found.code}}}'
    )
    report = replace(report, subjects=[replace(s, inputs_code=found.code) for s in report.subjects])
    accused = any(s.verdict == "refuted" for s in report.subjects)
    if accused and any(f.rule == "wrong-gradient" for f in _all(report)):
        report = _reconsidered(report, target, found, options)
    if any(f.rule in ("backward-raised", "unreduced-broadcast") for f in report.findings):
        report = _doubted(report, found)
    return replace(report, notes=[*report.notes, note])


def _reconsidered(report: Report, target: Target, found: Guess, options: Options) -> Report:
    """A guess may break what the author takes for granted: then nothing is proven, and the reader is asked."""
    assert found.args is not None
    opinion = None
    with preserved():
        for excuse in _EXCUSES:
            opinion = opinion or excuse(target, found.args, found.kwargs, options.seed)
    if opinion is not None:
        reason = f"{opinion.excuse}; declare inputs to say what is meant"
    elif depends_on_a_guessed_function(found.args):
        reason = "the gradient is wrong for a guessed function among the inputs; declare the one you use"
    else:
        return report
    findings = [f for f in report.findings if "wrong-gradient" not in (f.rule, *(s.rule for s in f.symptoms))]
    subjects = [_unproven(s, reason) for s in report.subjects]
    return replace(report, findings=findings, subjects=subjects)


def _doubted(report: Report, found: Guess) -> Report:
    """Shapes that do not fit in backward: forward may only have been too lenient with a guess."""
    several = sum(isinstance(a, Tensor) for a in found.args or ()) > 1

    def weighed(finding: Finding) -> Finding:
        if finding.rule == "unreduced-broadcast":
            return replace(finding, severity="info")
        doubtful = several and finding.rule == "backward-raised" and _UNFIT.search(finding.message)
        return replace(finding, severity="warning") if doubtful else finding

    findings = [weighed(f) for f in report.findings]
    doubted = [f for f, g in zip(findings, report.findings) if f.rule == "backward-raised" and f is not g]
    if not doubted or any(f.severity == "error" for f in findings):
        return replace(report, findings=findings)
    reason = "backward raises on the guessed inputs; declare inputs to say which shapes are meant"
    return replace(report, findings=findings, subjects=[_unproven(s, reason) for s in report.subjects])


def _unproven(subject: Subject, reason: str) -> Subject:
    return replace(subject, verdict="unverified", reason=reason)


def _all(report: Report) -> list[Any]:
    return [f for finding in report.findings for f in (finding, *finding.symptoms)]


def _tried(found: Guess) -> str:
    if not found.attempts:
        return found.errors[0] if found.errors else "nothing could be proposed"
    most = f", most often {found.errors[0][:120]}" if found.errors else ""
    return f"{found.attempts} guesses tried{most}"
