"""One line per finding, for editors and grep."""

from __future__ import annotations

from gradsmith.findings import Report
from gradsmith.report.place import place, shown_path


def render(report: Report, *, color: bool = False) -> str:
    lines = [f"{place(f)}: {f.severity}[{f.code} {f.rule}] {f.message}" for f in report.findings]
    lines += [f"{shown_path(s.path)}: skipped: {s.reason}" for s in report.skipped]
    return "\n".join([*lines, report.closing_line()]) + "\n"
