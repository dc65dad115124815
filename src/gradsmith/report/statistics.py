"""How often each rule was found: what `--statistics` prints."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass

from gradsmith.findings import Report


@dataclass(frozen=True)
class Statistic:
    """One rule, how often it was found, and how many of these finds `--fix` can mend."""

    count: int
    code: str
    rule: str
    severity: str
    fixable: int


def counted(report: Report) -> list[Statistic]:
    """The rules that were found, most frequent first."""
    keys = Counter((f.code, f.rule, f.severity or "info") for f in report.findings)
    fixable = Counter((f.code, f.rule, f.severity or "info") for f in report.findings if f.edits)
    found = [Statistic(n, *key, fixable[key]) for key, n in keys.items()]
    return sorted(found, key=lambda s: (-s.count, s.code, s.severity))


def render(report: Report, format: str = "full") -> str:
    """A table, or JSON."""
    found = counted(report)
    if format == "json":
        return json.dumps([asdict(s) for s in found], indent=2) + "\n"
    width = max((len(s.rule) for s in found), default=0)
    lines = [
        f"{s.count:>5}  {s.code}  {s.rule:<{width}}  {s.severity:<7}  {f'{s.fixable} fixable' if s.fixable else ''}".rstrip()
        for s in found
    ]
    return "\n".join([*lines, report.closing_line()]) + "\n"
