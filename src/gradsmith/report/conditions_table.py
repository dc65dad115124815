"""Under what else a gradient works: only what does not, unless everything was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from gradsmith.findings import Subject
from gradsmith.report.layout import wrapped
from gradsmith.report.style import Style

_TOLD = {"fails": ("fails under", "red"), "not supported": ("no support for", "yellow")}
_ALL = {"works": ("works under", "green"), **_TOLD, "not tried": ("not tried", "dim")}


def table(subjects: Sequence[Subject], style: Style, width: int, *, verbose: bool) -> list[str]:
    """One row for each subject and state: `Swish  no support for  vmap, jacrev`."""
    words = _ALL if verbose else _TOLD
    rows = []
    for subject in subjects:
        groups = _groups(subject)
        if set(groups) <= {"not tried"}:
            continue
        rows += [(subject.name, state, groups[state]) for state in words if state in groups]
    if not rows:
        return []
    first, second = max(len(r[0]) for r in rows), max(len(words[r[1]][0]) for r in rows)
    lines = [style.bold("conditions")]
    before = ""
    for name, state, conditions in rows:
        label, color = words[state]
        head = f"  {name if name != before else '':<{first}}  {label:<{second}}  "
        text = wrapped(", ".join(conditions), width, first=head, indent=" " * min(len(head), width // 2))
        lines += [text[0].replace(label, style.paint(label, color), 1), *text[1:]]
        before = name
    return lines


def _groups(subject: Subject) -> dict[str, list[str]]:
    """The conditions by state; a reason for not trying stands behind its condition."""
    groups: dict[str, list[str]] = {}
    for condition, said in subject.conditions.items():
        state, _, reason = said.partition(": ")
        told = f"{condition} ({reason})" if state == "not tried" and reason else condition
        groups.setdefault(state, []).append(told)
    return groups
