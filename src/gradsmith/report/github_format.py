"""Workflow commands: GitHub Actions shows findings beside the line of the pull request it stands on."""

from __future__ import annotations

from collections.abc import Mapping

from gradsmith.findings import RANK, Finding, Report, Subject
from gradsmith.report.escaping import escaped, without_commands
from gradsmith.report.place import place, shown_path

_COMMAND = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, *, color: bool = False) -> str:
    """One annotation for each subject, with its worst finding; errors first. GitHub shows only the first ten of a step."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in report.findings:
        alone = finding.line if finding.function is None else None
        groups.setdefault((finding.path, finding.cell, finding.function, alone), []).append(finding)
    told = [sorted(those, key=lambda f: RANK[f.severity or "info"]) for those in groups.values()]
    told.sort(key=lambda those: RANK[those[0].severity or "info"])
    lines = [_annotation(those) for those in told]
    lines += [f"::warning {_properties({'file': shown_path(s.path)})}::{_data(s.reason)}" for s in report.skipped]
    named = {finding.function for finding in report.findings}
    open_ends = [s for s in report.subjects if s.verdict == "unverified" and not s.known and s.name not in named]
    lines += [_open(subject) for subject in open_ends]
    return "\n".join([*lines, without_commands(escaped(report.closing_line()))]) + "\n"


def _open(subject: Subject) -> str:
    where = {"file": shown_path(subject.path), "line": subject.line} if subject.path else {}
    return f"::warning {_properties(where)}::{_data(f'{subject.name} is not verified: {subject.reason}')}"


def _annotation(findings: list[Finding]) -> str:
    """The first of these findings, which are about one subject; the others by name."""
    finding, *others = findings
    properties: dict[str, object] = {"title": f"gradsmith ({finding.code})"}
    # Lines of a notebook's cell are no lines of its file; the message names them instead.
    in_file = finding.path is not None and finding.cell is None
    if finding.path is not None:
        properties["file"] = shown_path(finding.path)
    if in_file and finding.line is not None:
        properties["line"] = finding.line
        properties["col"] = (finding.column or 0) + 1
        if finding.end_line is not None and finding.end_column is not None:
            properties["endLine"] = finding.end_line
            # GitHub ignores the columns of a finding that spans several lines.
            if finding.end_line == finding.line:
                properties["endColumn"] = finding.end_column + 1
    text = f"{place(finding)}: {finding.rule}: {finding.message}"
    if finding.advice:
        text += f"\n{finding.advice}"
    if others:
        rules = ", ".join(f"{other.rule} (line {other.line})" if other.line else other.rule for other in others)
        text += f"\nAlso here: {rules}."
    return f"::{_COMMAND[finding.severity or 'info']} {_properties(properties)}::{_data(text)}"


def _properties(values: Mapping[str, object]) -> str:
    return ",".join(f"{k}={_data(str(v)).replace(':', '%3A').replace(',', '%2C')}" for k, v in values.items())


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
