"""The full report: errors first, the user's own lines with a caret, the reason, what to write instead, and the verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gradsmith.findings import RANK, Finding, Report, Subject, plural
from gradsmith.report import profile_table, source_view
from gradsmith.report.conditions_table import table
from gradsmith.report.coverage import listed
from gradsmith.report.kinds import notes_together, told_once
from gradsmith.report.layout import PLAIN, wrapped
from gradsmith.report.place import place, shown_path
from gradsmith.report.rule_pages import page_address
from gradsmith.report.style import Style
from gradsmith.report.verdicts import verdicts, word

_MOST_PLACES = 3
_MOST_REASONS = 8


def render(
    report: Report, *, color: bool = False, width: int = PLAIN, verbose: bool = False, links: bool = False
) -> str:
    style = Style(color, links)
    findings = _ordered(report.findings if verbose else told_once(report.findings))
    blocks = [_finding(f, style, width) for f in findings if verbose or f.severity != "info"]
    if not verbose:
        blocks += _remarks([f for f in findings if f.severity == "info"], style, width)
    if report.skipped:
        lines = [line for s in report.skipped for line in _item(f"{shown_path(s.path)}: {s.reason}", width)]
        blocks.append([style.bold(f"skipped ({len(report.skipped)})"), *lines])
    blocks += [_steps(s, width) for s in report.subjects if s.measured.get("steps")]
    blocks += [listed(s, style, width) for s in report.subjects]
    blocks += [_profile(s, style, width) for s in report.subjects if s.measured.get("profile")]
    if report.subjects:
        blocks.append(verdicts(report.subjects, style, width, verbose=verbose))
    blocks.append(table(report.subjects, style, width, verbose=verbose))
    notes = report.notes if verbose else notes_together(report.notes, [s.name for s in report.subjects])
    blocks.append([line for note in notes for line in wrapped(f"note: {note}", width, indent="  ")])
    blocks.append([style.bold(line) for line in _closing(report, width)])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Errors first; of one weight, by file and line."""
    return sorted(findings, key=lambda f: (RANK[f.severity or "info"], f.path or "", f.cell or 0, f.line or 0))


def _finding(finding: Finding, style: Style, width: int) -> list[str]:
    severity = finding.severity or "info"
    name = f"{finding.rule}/{finding.cause}" if finding.cause else finding.rule
    blame = f" (a defect of {finding.blame}, not of your code)" if finding.blame != "user" else ""
    lines = wrapped(f"{severity}[{finding.code} {name}]{blame} {finding.message}", width, indent="    ")
    lines[0] = _headed(lines[0], severity, finding, style)
    lines += source_view.shown(finding, style, width)
    if finding.advice:
        lines += _labelled("help", finding.advice, style.paint("help:", "green"), width)
    if "thread" in finding.evidence:
        lines.append(f"  {style.dim('see:')} {finding.evidence['thread']} (torch {finding.evidence.get('torch', '?')})")
    for symptom in finding.symptoms:
        lines += _labelled("also", f"[{symptom.rule}] {symptom.message}", style.dim("also:"), width)
    if finding.reproduce and "check" in finding.lenses and 0 < len(finding.reproduce.inputs) < width - 20:
        lines.append(f"  {style.dim('inputs:')} {finding.reproduce.inputs}")
    return lines


def _headed(line: str, severity: str, finding: Finding, style: Style) -> str:
    """The first line with the severity in its colour, and the code as a link to the page of its rule."""
    code = style.link(style.bold(finding.code), page_address(finding.rule)) if finding.code else ""
    rest = line.removeprefix(f"{severity}[{finding.code}")
    return f"{style.paint(severity, source_view.MARK[severity])}[{code}{rest}"


def _labelled(label: str, text: str, painted: str, width: int) -> list[str]:
    lines = wrapped(text, width, first=f"  {label}: ", indent=" " * (len(label) + 4))
    return [lines[0].replace(f"{label}:", painted, 1), *lines[1:]]


def _remarks(findings: Sequence[Finding], style: Style, width: int) -> list[list[str]]:
    """One block for each rule: what it remarks, how often and where. `-v` shows each of them in full, with its source."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in _ordered(findings):
        groups[finding.code, finding.rule].append(finding)
    return [_remark(code, rule, those, style, width) for (code, rule), those in groups.items()]


def _remark(code: str, rule: str, those: list[Finding], style: Style, width: int) -> list[str]:
    first = those[0]
    name = f"{rule}/{first.cause}" if first.cause and len(those) == 1 else rule
    blame = f" (a defect of {first.blame}, not of your code)" if first.blame != "user" else ""
    times = f" ({len(those)} times)" if len(those) > 1 else ""
    lines = wrapped(f"info[{code} {name}]{blame}{times} {first.message}", width, indent="    ")
    lines[0] = _headed(lines[0], "info", first, style)
    places = list(dict.fromkeys(place(f) for f in those))
    more = [f"and {len(places) - _MOST_PLACES} more; -v shows all"] if len(places) > _MOST_PLACES else []
    lines += [f"  {style.dim('-->')} {where}" for where in places[:_MOST_PLACES]]
    lines += [f"      {text}" for text in more]
    if first.advice:
        lines += _labelled("help", first.advice, style.paint("help:", "green"), width)
    return lines


def _closing(report: Report, width: int) -> list[str]:
    """The verdicts counted; reasons for what was not verified are counted on lines of their own, at most ten in all."""
    lines = wrapped(report.closing_line(), width, indent="  ")
    counted: dict[str, int] = defaultdict(int)
    for subject in report.subjects:
        if subject.verdict == "unverified" and subject.reason:
            counted[subject.reason] += 1
    reasons = sorted(counted.items(), key=lambda pair: -pair[1])
    told = [_item(f"{count} not verified: {reason}", width)[0] for reason, count in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        told.append(f"  and {plural(len(reasons) - _MOST_REASONS, 'other reason')}")
    return [*lines, *told] if len(counted) > 1 or sum(counted.values()) > 1 else lines


def _item(text: str, width: int) -> list[str]:
    return wrapped(text, width, first="  ", indent="    ")


def _profile(subject: Subject, style: Style, width: int) -> list[str]:
    """Where time and memory go. The findings of the profile stand with the others."""
    text = profile_table.render({**subject.measured["profile"], "findings": []}, color=style.color, width=width)
    return text.rstrip("\n").splitlines()


def _steps(subject: Subject, width: int) -> list[str]:
    lines = [f"{subject.name}, step by step"]
    for number, step in enumerate(subject.measured["steps"], 1):
        lines += wrapped(f"{number}. {step['title']}: {step['state']}", width, first="  ", indent="     ")
        lines += [line for seen in step["seen"] for line in wrapped(seen, width, first=" " * 7, indent=" " * 9)]
        if step["advice"]:
            lines += wrapped(f"try: {step['advice']}", width, first=" " * 7, indent=" " * 12)
    lines.append(f"  {len(subject.measured['steps']) + 1}. the verdict: {word(subject.verdict)}")
    return lines
