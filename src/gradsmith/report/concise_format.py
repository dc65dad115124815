"""One line per finding, for editors and grep; one per subject of which more is known than its verdict."""

from __future__ import annotations

from gradsmith.findings import Report, Subject
from gradsmith.report.explored import right_where
from gradsmith.report.place import place, shown_path
from gradsmith.report.verdicts import word


def render(report: Report, *, color: bool = False) -> str:
    lines = [f"{place(f)}: {f.severity}[{f.code} {f.rule}] {f.message}" for f in report.findings]
    lines += [f"{shown_path(s.path)}: skipped: {s.reason}" for s in report.skipped]
    lines += [f"{s.name}: {word(s.verdict)}: {words}" for s in report.subjects if (words := _known(s))]
    return "\n".join([*lines, report.closing_line()]) + "\n"


def _known(subject: Subject) -> str:
    """Where it is right, or why nothing is known of it."""
    return right_where(subject) or (subject.reason if subject.verdict == "unverified" else "")
