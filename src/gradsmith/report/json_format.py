"""Everything in the report, as JSON (schema 1)."""

from __future__ import annotations

from gradsmith.findings import Report


def render(report: Report, *, color: bool = False) -> str:
    return report.to_json() + "\n"
