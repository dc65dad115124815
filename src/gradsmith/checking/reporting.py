"""Outcomes of variations as findings: one per rule and subject, the worst first, with the inputs that show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradsmith.checking import verdict
from gradsmith.findings import Finding, Severity
from gradsmith.lab.explore.variations.judging import Outcome
from gradsmith.lab.lab import Lab
from gradsmith.lab.snippet import demonstration


def reported(lab: Lab, outcomes: Sequence[Outcome], advice: str, most: Severity = "error") -> Iterator[Finding]:
    """The worst outcome, and how many more variations fail in the same way."""
    judged = [(severity_of(o, most), o) for o in outcomes if o.status in ("wrong", "raises")]
    if not judged:
        return
    judged.sort(key=lambda pair: verdict.worse_first(pair[0]))
    severity, worst = judged[0]
    alike = [o.variation.words for s, o in judged[1:] if s == severity]
    more = f" The same {'; '.join(alike[:3])}." if alike else ""
    finding = lab.finding(
        _message(lab, worst) + more,
        argument=worst.variation.argument,
        severity=severity,
        advice=advice,
        evidence={
            "variation": worst.variation.words,
            "status": worst.status,
            "tried": len(outcomes),
            "rejected": [f"{o.variation.words}: {o.detail}" for o in outcomes if o.status == "rejected"],
        },
    )
    m = worst.mismatch
    where = (m.argument, m.element) if m is not None else (None, None)
    yield replace(finding, reproduce=demonstration(lab, worst.variation.arguments, "gradient", *where))


def severity_of(outcome: Outcome, most: Severity = "error") -> Severity:
    return verdict.of_step(wrong=outcome.status == "wrong", doubtful=outcome.variation.doubtful, most=most)


def _message(lab: Lab, outcome: Outcome) -> str:
    words = outcome.variation.words
    if outcome.status == "raises":
        return f"{lab.target.name}.backward raises {words}, although forward accepts it: {outcome.detail}"
    m = outcome.mismatch
    if m is None:
        return f"{lab.target.name}.backward: {words}, {outcome.detail}."
    at = f"[{', '.join(map(str, m.element))}]" if m.element else ""
    return (
        f"{lab.target.name}.backward: {words}, the gradient of '{m.argument}' is wrong at {m.argument}{at}: "
        f"backward says {m.claimed:.6g}, the derivative of forward is {m.true:.6g}."
    )
