"""Check a subject on guessed inputs, and say so; where nothing worked, say what was tried and what to write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradsmith.checking import Options, declaration, examine, unverified
from gradsmith.findings import Report
from gradsmith.inputs.guess import Guess, guess
from gradsmith.inputs.guess.second_opinion import depends_on_a_guessed_function, symmetric_excuse
from gradsmith.lab.eager import uncompiled
from gradsmith.lab.state import preserved
from gradsmith.lab.target import Target


def examine_guessed(target: Target, options: Options, device: Any = None) -> Report:
    """The report on guessed inputs, with the declaration that would keep them."""
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
    if any(f.rule == "wrong-gradient" for f in _all(report)):
        report = _reconsidered(report, target, found, options)
    return replace(report, notes=[*report.notes, note])


def _reconsidered(report: Report, target: Target, found: Guess, options: Options) -> Report:
    """A guess may break what the author takes for granted: then nothing is proven, and the reader is asked."""
    assert found.args is not None
    with preserved():
        opinion = symmetric_excuse(target, found.args, found.kwargs, options.seed)
    if opinion is not None:
        reason = f"{opinion.excuse}; declare inputs to say what is meant"
    elif depends_on_a_guessed_function(found.args):
        reason = "the gradient is wrong for a guessed function among the inputs; declare the one you use"
    else:
        return report
    findings = [f for f in report.findings if "wrong-gradient" not in (f.rule, *(s.rule for s in f.symptoms))]
    subjects = [replace(s, verdict="unverified", reason=reason) for s in report.subjects]
    return replace(report, findings=findings, subjects=subjects)


def _all(report: Report) -> list[Any]:
    return [f for finding in report.findings for f in (finding, *finding.symptoms)]


def _tried(found: Guess) -> str:
    if not found.attempts:
        return found.errors[0] if found.errors else "nothing could be proposed"
    most = f", most often {found.errors[0][:120]}" if found.errors else ""
    return f"{found.attempts} guesses tried{most}"
