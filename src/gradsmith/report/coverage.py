"""What of a subject was never examined: lines that did not run, sides of conditions that no example took."""

from __future__ import annotations

from gradsmith.findings import Subject
from gradsmith.report.layout import wrapped
from gradsmith.report.style import Style

_MOST = 2
ASKED = "coverage asked"


def not_reached(subject: Subject) -> list[str]:
    """`Not reached: line 17 never ran; line 9: `q.abs()` never saw a negative number`, under the verdict."""
    missed = list(subject.coverage.get("not reached", ()))
    if not missed or subject.measured.get(ASKED):
        return []
    more = len(missed) - _MOST
    rest = f"; and {more} more (--coverage lists them)" if more > 0 else ""
    return [f"       Not reached: {'; '.join(missed[:_MOST])}{rest}"]


def listed(subject: Subject, style: Style, width: int) -> list[str]:
    """All of it, for `--coverage`; empty where nobody asked."""
    if not subject.measured.get(ASKED):
        return []
    found = subject.coverage
    if not found:
        return [f"{style.bold('coverage')} {subject.name}: it could not be run"]
    lines = f"{found['lines reached']} of {found['lines']} lines"
    sides = f"{found['sides reached']} of {found['sides']} sides of conditions"
    told = [f"{style.bold('coverage')} {subject.name}: {lines}, {sides}"]
    sentences = list(found["not reached"])
    if count := found["reached, not judged"]:
        sentences.append(f"{count} of those that were reached ran only where the gradient could not be judged")
    return [*told, *(line for text in sentences for line in wrapped(text, width, first="  ", indent="    "))]
