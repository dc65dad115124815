"""Check a subject on guessed inputs, and say so; where nothing worked, say what was tried and what to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.nn import Module

from gradsmith.checking import Options, declaration, examine, unverified
from gradsmith.findings import Finding, Report, Severity, Subject
from gradsmith.inputs.excuses import converged_excuse, shrunk_excuse, tolerance_excuse, vector_excuse
from gradsmith.inputs.guess import Guess, guess
from gradsmith.inputs.guess.functions import Written
from gradsmith.inputs.guess.guarded import guarded_excuse
from gradsmith.inputs.guess.second_opinion import (
    Opinion,
    definite_excuse,
    function_excuse,
    implied_excuse,
    range_excuse,
    subclass_excuse,
    symmetric_excuse,
)
from gradsmith.inputs.labels import labels_excuse
from gradsmith.inputs.refitted import refitted, restoring
from gradsmith.lab.eager import uncompiled
from gradsmith.lab.lifting import assumed
from gradsmith.lab.stages import inputs_are_guessed
from gradsmith.lab.state import preserved
from gradsmith.lab.target import Target

Excuse = Callable[[Target, tuple[Any, ...], dict[str, Any], int], Opinion | None]
# Those that show a right gradient come first.
_EXCUSES = (
    symmetric_excuse,
    definite_excuse,
    range_excuse,
    guarded_excuse,
    shrunk_excuse,
    labels_excuse,
    converged_excuse,
    tolerance_excuse,
    function_excuse,
    implied_excuse,
    subclass_excuse,
)
_OF_BENT = (*_EXCUSES, vector_excuse)
_GUARDS = (guarded_excuse, shrunk_excuse, tolerance_excuse)
# Shapes that do not fit each other: with several tensors, the guess may be what does not fit.
_UNFIT = re.compile(r"shape|size|dimension|index \d+ is out of|must match|broadcast|expand", re.IGNORECASE)
_FROM_SHAPES = ("backward-raised", "unreduced-broadcast", "forward-raised", "gradient-shape")


def examine_guessed(target: Target, options: Options, device: Any = None) -> Report:
    """The report on guessed inputs, with the declaration that would keep them."""
    inputs_are_guessed()
    found = guess(replace(target, call=restoring(target.call)), seed=options.seed, device=device)
    return examine_on(target, refitted(target, found, options.seed), options)


def examine_on(target: Target, found: Guess, options: Options) -> Report:
    """The report on what was guessed: an accusation is only as good as the inputs it rests on."""
    if found.args is None:
        return unverified(target, f"no inputs worked ({_tried(found)}); write {declaration(target)}")
    with uncompiled():
        report = examine(target, [(found.args, found.kwargs)], "guessed", options)
    report = replace(report, subjects=[replace(s, inputs_code=found.code) for s in report.subjects])
    accused = any(s.verdict == "refuted" for s in report.subjects)
    if accused and any(f.rule == "wrong-gradient" for f in _all(report)):
        report = _reconsidered(report, target, found, options, _EXCUSES if not _bent(report) else _OF_BENT)
    elif any(f.rule == "undeclared-surrogate" for f in report.findings):
        # Beyond a guard forward is flat, and between the steps of a search: both look like a surrogate.
        report = _reconsidered(report, target, found, options, _GUARDS)
    if any(f.rule in _FROM_SHAPES for f in report.findings):
        report = _doubted(report, target, found)
    report = replace(report, findings=[_perhaps_a_number(f, target, found) for f in report.findings])
    return replace(report, notes=[*report.notes, *_lifted(target), _guessed(target, found)])


def _bent(report: Report) -> bool:
    """Whether a gradient that is wrong came back in another shape, too: then the shapes may be what is wrong."""
    wrong = {f.argument for f in _all(report) if f.rule == "wrong-gradient"}
    return any(f.rule == "unreduced-broadcast" and f.argument in wrong for f in _all(report))


def _perhaps_a_number(finding: Finding, target: Target, found: Guess) -> Finding:
    """`ctx.scale = scale`, `x.new(shape)` without a gradient: that it is a tensor is all our own idea."""
    if (
        finding.rule not in ("tensor-on-ctx", "inplace-input")
        or "lint" in finding.lenses
        or finding.argument not in target.names
    ):
        return finding
    value = (*(found.args or ()), *found.kwargs.values())[target.names.index(finding.argument) :][:1]
    ours = any(isinstance(v, Tensor) and not v.requires_grad for v in value)
    return replace(finding, severity="info") if ours else finding


def _guessed(target: Target, found: Guess) -> str:
    guessed = f"{target.name}: inputs were guessed" + (f" as {found.caller} passes them on" if found.caller else "")
    if not found.code:
        return f"{guessed}; declare inputs to keep them"
    return f'{guessed}; keep or correct them: gradsmith_inputs = {{"{target.name}": lambda: {found.code}}}'


def _lifted(target: Target) -> list[str]:
    assumption = assumed(target.function)
    if assumption is None or not assumption.values:
        return []
    given = ", ".join(f"{k}={getattr(v, '__name__', repr(v))}" for k, v in assumption.values.items() if v != ())
    return [f"{target.name}: taken out of {assumption.outer}({given}), which was not called"]


def doubt(target: Target, found: Guess, seed: int, excuses: Sequence[Excuse] = _EXCUSES) -> Opinion | None:
    """What speaks for the Function where its gradient is wrong on guessed inputs."""
    assert found.args is not None
    with preserved():
        for excuse in excuses:
            opinion = excuse(target, found.args, found.kwargs, seed)
            if opinion is not None:
                return opinion
    assumption = assumed(target.function)
    if assumption is None or not assumption.guessed or excuses is not _EXCUSES:
        return None
    names = ", ".join(f"'{name}'" for name in assumption.guessed)
    return Opinion(found.args, f"{names} of {assumption.outer} had to be guessed", proven=False)


def _reconsidered(
    report: Report, target: Target, found: Guess, options: Options, excuses: Sequence[Excuse] = _EXCUSES
) -> Report:
    """A guess may break what the author takes for granted: then nothing is proven, and the reader is asked.

    Where the gradient is right on other inputs, the accusation becomes a remark; where nothing shows that it is
    ever right, a warning.
    """
    opinion = doubt(target, found, options.seed, excuses)
    if opinion is None:
        return report
    reason = f"{opinion.excuse}; declare inputs to say what is meant"
    severity: Severity = "info" if opinion.proven else "warning"

    def weighed(finding: Finding) -> Finding:
        if "wrong-gradient" not in (finding.rule, *(s.rule for s in finding.symptoms)):
            return finding
        return replace(finding, severity=severity, advice=f"Inputs were guessed: {reason}.")

    findings = [weighed(f) for f in report.findings]
    if any(f.severity == "error" and f.blame == "user" for f in findings):
        return replace(report, findings=findings)
    return replace(report, findings=findings, subjects=[_unproven(s, reason) for s in report.subjects])


def _doubted(report: Report, target: Target, found: Guess) -> Report:
    """Shapes that do not fit in backward: forward may only have been too lenient with a guess.

    A guessed function need not use the inputs that its author hands to it, and who writes `def build(scale=None)` may
    never build it without a scale.
    """
    assumption = assumed(target.function)
    unset = assumption is not None and None in assumption.values.values()
    several = sum(isinstance(a, Tensor) for a in found.args or ()) > 1
    function = any(isinstance(a, (Written, Module)) for a in found.args or ())
    # With too few gradients PyTorch takes none of them, so that no guess could be fitted to their shapes.
    miscounted = any(f.rule == "return-count" for f in report.findings)

    def weighed(finding: Finding) -> Finding:
        unfitted = finding.rule == "gradient-shape" and several and miscounted
        if unfitted or finding.rule in ("unreduced-broadcast", "forward-raised"):
            return replace(finding, severity="info")
        doubtful = finding.rule == "backward-raised" and (
            function or unset or (several and _UNFIT.search(finding.message))
        )
        return replace(finding, severity="warning") if doubtful else finding

    findings = [weighed(f) for f in report.findings]
    doubted = [f for f, g in zip(findings, report.findings) if f.rule == "backward-raised" and f is not g]
    if not doubted or any(f.severity == "error" for f in findings):
        return replace(report, findings=findings)
    reason = "backward raises on the guessed inputs; declare inputs to say what is meant"
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
