"""What the page shows of each subject: plain values, so that the template decides nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gradsmith.findings import RANK, Finding, Report, Subject, plural
from gradsmith.report.explored import below, right_where
from gradsmith.report.page import charts
from gradsmith.report.page.covered import Covered, covered
from gradsmith.report.page.source import Line, diff_of, excerpt_of
from gradsmith.report.place import brief, shown_path, spot
from gradsmith.report.profile_table import duration, size, too_busy

_LINES = 12  # bars of a profile
_ORDER = ("refuted", "unverified", "", "verified", "skipped")  # what asks for something comes first
_STATES = ("works", "fails", "not supported", "not tried")


@dataclass(frozen=True)
class ShownFinding:
    """One finding; `symptoms` are (rule, message)."""

    rule: str
    code: str
    severity: str
    cause: str
    message: str
    advice: str
    blame: str
    place: str
    excerpt: list[Line]
    diff: list[str]
    chart: str
    numbers: list[tuple[str, str]]
    symptoms: list[tuple[str, str]]
    inputs: str
    snippet: str
    thread: str


@dataclass(frozen=True)
class Table:
    """Numbers behind a chart, for those who do not see it."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    chart: str = ""


@dataclass(frozen=True)
class Card:
    """One subject, or one function that only lint looked at."""

    key: str
    name: str
    package: str
    place: str = ""
    verdict: str = ""
    unjudged: str = "not run"  # what is said where there is no verdict
    gradient: str = ""
    inputs_from: str = ""
    inputs: str = ""
    reason: str = ""
    right_where: str = ""
    assumptions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    explored: list[tuple[str, list[str]]] = field(default_factory=list)
    covered: Covered | None = None
    conditions: list[tuple[str, str, str]] = field(default_factory=list)
    findings: list[ShownFinding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    @property
    def outcomes(self) -> dict[str, str]:
        """What became of each condition that was tried."""
        return {name: state for name, state, _ in self.conditions}

    @property
    def tried(self) -> bool:
        """Was any condition tried? (None is, where the gradient is wrong without any.)"""
        return any(state != "not tried" for state in self.outcomes.values())


def cards_of(report: Report, prefix: str = "", *, drawn: bool = True) -> list[Card]:
    """A card per subject with its findings, then a card per function that has findings and is not a subject.

    `prefix` keeps apart what several reports draw into one document: a notebook. Charts of profiles are there where `drawn`.
    """
    left = list(report.findings)
    cards: list[Card] = []
    for subject in sorted(report.subjects, key=lambda s: _ORDER.index(s.verdict)):
        own = sorted((f for f in left if _is_of(f, subject)), key=lambda f: RANK[f.severity or "info"])
        left = [f for f in left if f not in own]
        cards.append(_subject_card(subject, own, f"{prefix}s{len(cards)}", drawn=drawn))
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in left:
        groups.setdefault((finding.path or "", finding.function or ""), []).append(finding)
    for (path, function), own in groups.items():
        name, key = function or shown_path(path) or "the report", f"{prefix}s{len(cards)}"
        shown = [_shown(f, f"{key}f{i}") for i, f in enumerate(own)]
        cards.append(Card(key, name, _package(path), shown_path(path) if path else "", findings=shown))
    return cards


def _is_of(finding: Finding, subject: Subject) -> bool:
    here = {os.path.realpath(path) for path in (finding.path, subject.path) if path}
    names = {subject.name, subject.name.rpartition(".")[2], subject.name.rpartition("::")[2]}
    return finding.function in names and len(here) <= 1


def _subject_card(subject: Subject, findings: list[Finding], key: str, *, drawn: bool) -> Card:
    steps: Mapping[str, Any] = subject.explored.get("steps", {})
    profile: Mapping[str, Any] | None = subject.measured.get("profile")
    profile_notes = [f"Profile: {_in_short(profile)}", *profile["notes"]] if profile else []
    return Card(
        key=key,
        name=subject.name,
        package=_package(subject.path or ""),
        place=spot(subject.path, subject.line or 1) if subject.path else "",
        verdict=subject.verdict,
        gradient=subject.gradient if subject.gradient != "exact" else "",
        inputs_from=subject.inputs_from,
        inputs=subject.inputs_code,
        reason=subject.reason,
        right_where=right_where(subject),
        assumptions=list(subject.assumptions),
        notes=[*(line.strip() for line in below(subject)), *profile_notes],
        explored=[(kind, list(told)) for kind, told in steps.items() if told],
        covered=covered(subject),
        conditions=[(name, *_state(state)) for name, state in subject.conditions.items()],
        findings=[_shown(finding, f"{key}f{i}") for i, finding in enumerate(findings)],
        tables=_tables(profile, key, drawn=drawn) if profile else [],
    )


def _state(told: str) -> tuple[str, str]:
    """(works | fails | not supported | not tried, why)."""
    state, _, why = told.partition(":")
    return (state, why.strip()) if state in _STATES else ("fails", told)


def _package(path: str) -> str:
    """The folder, as a filter names it."""
    return os.path.dirname(shown_path(path)) or "." if path else "."


def _shown(finding: Finding, key: str) -> ShownFinding:
    evidence = finding.evidence
    numbers = [(name, f"{evidence[name]:.6g}") for name in ("claimed", "true") if isinstance(evidence.get(name), float)]
    again = finding.reproduce
    return ShownFinding(
        rule=finding.rule,
        code=finding.code,
        severity=finding.severity or "info",
        cause=finding.cause or "",
        message=finding.message,
        advice=finding.advice or "",
        blame="" if finding.blame == "user" else finding.blame,
        place=spot(finding.path, finding.line, finding.cell) if finding.path else "",
        excerpt=excerpt_of(finding),
        diff=diff_of(finding),
        chart=_chart(finding, key),
        numbers=numbers,
        symptoms=[(s.rule, s.message) for s in finding.symptoms],
        inputs=again.inputs if again else "",
        snippet=again.snippet if again else "",
        thread=str(evidence.get("thread", "")),
    )


def _chart(finding: Finding, key: str) -> str:
    gradients, access = finding.evidence.get("gradients"), finding.evidence.get("access")
    if isinstance(gradients, Mapping):
        return charts.gradient_error(gradients, key)
    if isinstance(access, Mapping):
        return charts.access(access, f"{access.get('words', '')}.", key)
    return ""


def profile_card(profile: Mapping[str, Any], number: int, *, drawn: bool = True) -> Card:
    """A profile: where the time goes, how it grows, and who keeps the memory; as charts, too, where they are `drawn`."""
    key, subject = f"p{number}", profile["subject"]
    own = [Finding(**_known(f)) for f in profile["findings"]]
    return Card(
        key=key,
        name=subject["name"],
        unjudged="profiled",
        package=_package(subject["path"] or ""),
        place=spot(subject["path"], subject["line"]) if subject["path"] else "",
        inputs_from=subject["inputs_from"],
        inputs=subject["inputs"],
        notes=[_in_short(profile), *profile["notes"]],
        findings=[_shown(finding, f"{key}f{i}") for i, finding in enumerate(own)],
        tables=_tables(profile, key, drawn=drawn),
    )


def _tables(profile: Mapping[str, Any], key: str, *, drawn: bool) -> list[Table]:
    tables = (_by_line(profile, key, drawn), _growth(profile, key, drawn), _saved(profile, key, drawn))
    return [table for table in tables if table.rows]


def _in_short(profile: Mapping[str, Any]) -> str:
    seconds, memory = profile["seconds"], profile["memory"]
    times = [f"{phase} {duration(seconds[phase]['median'])}" for phase in ("forward", "backward")]
    if too_busy(profile):
        times = [f"time not told: others had the processor for {profile['disturbed']:.0%} of it"]
    kept = f"{size(memory['saved_bytes'])} saved for backward, peak {size(memory['peak_bytes'])}"
    return f"{', '.join(times)}; {kept}"


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    """The plain fields of a finding that came as JSON."""
    left = ("fingerprint", "symptoms", "edits", "reproduce", "lenses")
    return {name: value for name, value in data.items() if name not in left}


def _by_line(profile: Mapping[str, Any], key: str, drawn: bool) -> Table:
    uses = profile["by_line"][:_LINES]
    names = [f"{brief(use['path'], use['line'])}  {use['text'].strip()}" for use in uses]
    times = [] if too_busy(profile) else [duration(use["forward_s"] + use["backward_s"]) for use in uses]
    rows = [[name, f"{use['share']:.0%}", *times[i : i + 1]] for i, (name, use) in enumerate(zip(names, uses))]
    chart = (
        charts.bars([(name, 100 * use["share"]) for name, use in zip(names, uses)], "share of the time, %", f"{key}l")
        if uses and drawn
        else ""
    )
    return Table("Where the time goes, by line", ["line", "share", *(["time"] if times else [])], rows, chart)


def _growth(profile: Mapping[str, Any], key: str, drawn: bool) -> Table:
    exponents = [
        (g["dimension"], name.replace("_", " "), e) for g in profile["growth"] for name, e in g["exponents"].items()
    ]
    told = [(dimension, name, float(e)) for dimension, name, e in exponents if isinstance(e, (int, float))]
    chart = charts.growth(told, f"{key}g") if told and drawn else ""
    return Table(
        "Growth with the size", ["dimension", "what", "grows like"], [[d, n, f"n^{e:.1f}"] for d, n, e in told], chart
    )


def _saved(profile: Mapping[str, Any], key: str, drawn: bool) -> Table:
    owners: dict[str, dict[int, int]] = {}
    for saved in profile["memory"]["saved"]:
        name = f" ctx.{saved['attribute']}" if saved["attribute"] else ""
        owners.setdefault(f"{saved['role']}{name}, {saved['how']}", {})[saved["storage"]] = saved["storage_bytes"]
    totals = sorted(((name, sum(pieces.values())) for name, pieces in owners.items()), key=lambda pair: -pair[1])[
        :_LINES
    ]
    rows = [[name, size(total), plural(len(owners[name]), "tensor")] for name, total in totals]
    most = max((total for _, total in totals), default=0)
    unit, divisor = next(
        (u, d) for u, d in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)) if most >= d or d == 1
    )
    chart = (
        charts.bars([(name, total / divisor) for name, total in totals], f"{unit} saved for backward", f"{key}m")
        if totals and drawn
        else ""
    )
    return Table("Saved for backward", ["what", "memory", "tensors"], rows, chart)
