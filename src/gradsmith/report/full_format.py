"""The full report: the user's own line with a caret, the reason, and what to write instead."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gradsmith.findings import Finding, Report, Subject
from gradsmith.report.explored import below, right_where
from gradsmith.report.kinds import told_once
from gradsmith.report.place import place, shown_path
from gradsmith.report.style import Style

_WIDTH = 110
_MARK = {"error": "red", "warning": "yellow", "info": "cyan"}
_VERDICT = {
    "verified": ("ok", "green"),
    "refuted": ("WRONG", "red"),
    "unverified": ("??", "yellow"),
    "skipped": ("--", "dim"),
}


def render(report: Report, *, color: bool = False) -> str:
    style = Style(color)
    blocks = [_finding(f, style) for f in told_once(report.findings)]
    if report.skipped:
        lines = [f"  {shown_path(s.path)}: {s.reason}" for s in report.skipped]
        blocks.append("\n".join([style.bold(f"skipped ({len(lines)})"), *lines]))
    blocks += [f"{s.name}, step by step\n{_steps(s)}" for s in report.subjects if s.measured.get("steps")]
    if report.subjects:
        blocks.append("\n".join(line for s in report.subjects for line in (verdict_line(s, style), *below(s))))
    if matrix := _matrix(report.subjects, style):
        blocks.append(matrix)
    if report.notes:
        blocks.append("\n".join(f"note: {note}" for note in report.notes))
    blocks.append(style.bold(report.closing_line()))
    return "\n\n".join(blocks) + "\n"


def _finding(finding: Finding, style: Style) -> str:
    severity = finding.severity or "info"
    name = f"{finding.rule}/{finding.cause}" if finding.cause else finding.rule
    blame = f" (a defect of {finding.blame}, not of your code)" if finding.blame != "user" else ""
    head = f"{style.paint(severity, _MARK[severity])}[{finding.code} {name}]{blame}"
    lines = [f"{head} {_wrapped(finding.message, len(severity) + len(name) + 10)}"]
    lines += _source(finding, style)
    if finding.advice:
        lines.append(f"  {style.paint('help:', 'green')} {_wrapped(finding.advice, 8)}")
    if "thread" in finding.evidence:
        lines.append(f"  {style.dim('see:')} {finding.evidence['thread']} (torch {finding.evidence.get('torch', '?')})")
    for symptom in finding.symptoms:
        lines.append(f"  {style.dim('also:')} [{symptom.rule}] {_wrapped(symptom.message, 10)}")
    if finding.reproduce and "check" in finding.lenses and 0 < len(finding.reproduce.inputs) < 90:
        lines.append(f"  {style.dim('inputs:')} {finding.reproduce.inputs}")
    return "\n".join(lines)


def _source(finding: Finding, style: Style) -> list[str]:
    if finding.line is None:
        return [f"  --> {place(finding)}"] if finding.path else []
    lines = [f"  {style.dim('-->')} {place(finding)}"]
    if not finding.snippet:
        return lines
    number = str(finding.line)
    margin = " " * len(number)
    text = finding.snippet.rstrip("\n")
    shift = len(text) - len(text.lstrip())
    column = (finding.column or 0) - shift
    if finding.end_line == finding.line and finding.end_column is not None:
        width = max(1, finding.end_column - (finding.column or 0))
    else:
        width = max(1, len(text.rstrip()) - (finding.column or 0))
    caret = style.paint("^" * width, _MARK[finding.severity or "info"])
    return [*lines, f"  {number} | {text.strip()}", f"  {margin} | {' ' * max(0, column)}{caret}"]


def verdict_line(subject: Subject, style: Style) -> str:
    """`WRONG  Swish [declared inputs]: wrong-gradient`; of a verified one, where else it is right, and what it assumes."""
    word, color = _VERDICT[subject.verdict]
    origin = f" [{subject.inputs_from} inputs]" if subject.inputs_from != "none" else ""
    words = "; ".join(filter(None, (subject.reason, right_where(subject))))
    reason = f": {words}" if words else ""
    meant = f" ({subject.gradient} gradient)" if subject.gradient != "exact" else ""
    return f"{style.paint(f'{word:>5}', color)}  {subject.name}{meant}{origin}{reason}"


_CELL = {
    "works": ("yes", "green"),
    "fails": ("FAILS", "red"),
    "not supported": ("no", "yellow"),
    "not tried": (".", "dim"),
}


def _matrix(subjects: Sequence[Subject], style: Style) -> str:
    """One row per subject that was tried under conditions: what works, fails, or is not supported, and why."""
    rows = [s for s in subjects if any(not state.startswith("not tried") for state in s.conditions.values())]
    lines = []
    for subject in rows:
        groups: dict[str, list[str]] = {}
        for condition, state in subject.conditions.items():
            groups.setdefault(state.partition(":")[0], []).append(condition)
        told = [
            f"{style.paint(word, color)} {', '.join(groups[state])}"
            for state, (word, color) in _CELL.items()
            if state in groups and state != "not tried"
        ]
        untried: dict[str, list[str]] = {}
        for condition in groups.get("not tried", ()):
            untried.setdefault(subject.conditions[condition].partition(": ")[2], []).append(condition)
        if untried:
            reasons = [f"{', '.join(those)} ({reason})" for reason, those in untried.items()]
            told.append(f"{style.dim('not tried')} {', '.join(reasons)}")
        lines.append(f"  {subject.name}: " + "; ".join(told))
    return "\n".join([style.bold("works under"), *lines]) if lines else ""


def _wrapped(text: str, indent: int) -> str:
    lines = textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n          ".join(line.strip() for line in lines)


def _steps(subject: Subject) -> str:
    lines = []
    for number, step in enumerate(subject.measured["steps"], 1):
        lines.append(f"  {number}. {step['title']}: {step['state']}")
        lines += [f"       {line}" for line in step["seen"]]
        lines += [f"       try: {step['advice']}"] if step["advice"] else []
    lines.append(f"  {len(subject.measured['steps']) + 1}. the verdict: {subject.verdict}")
    return "\n".join(lines)
