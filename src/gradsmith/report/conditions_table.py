"""Under what else a gradient works: only what does not, unless everything was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from gradsmith.findings import Subject
from gradsmith.report.layout import wrapped
from gradsmith.report.style import Style

_TOLD = {"fails": ("fails under", "red"), "not supported": ("no support for", "yellow")}
_MANY = 3
_ALL = {"works": ("works under", "green"), **_TOLD, "not tried": ("not tried", "dim")}


def table(subjects: Sequence[Subject], style: Style, width: int, *, verbose: bool) -> list[str]:
    """One row for each subject and state: `Swish  no support for  vmap, jacrev`. Many of which the same is true share a row."""
    words = _ALL if verbose else _TOLD
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for subject in subjects:
        groups = _groups(subject)
        told = tuple((state, ", ".join(groups[state])) for state in words if state in groups)
        if told and not set(groups) <= {"not tried"}:
            alike.setdefault(told, []).append(subject.name)
    rows = [row for told, names in alike.items() for row in _rows(told, names, several=not verbose)]
    if not rows:
        return []
    first, second = max(len(r[0]) for r in rows), max(len(words[r[1]][0]) for r in rows)
    lines = [style.bold("conditions")]
    before = ""
    for name, state, conditions in rows:
        label, color = words[state]
        head = f"  {name if name != before else '':<{first}}  {label:<{second}}  "
        text = wrapped(conditions, width, first=head, indent=" " * min(len(head), width // 2))
        lines += [text[0].replace(label, style.paint(label, color), 1), *text[1:]]
        before = name
    return lines


def _rows(told: tuple[tuple[str, str], ...], names: list[str], *, several: bool) -> list[tuple[str, str, str]]:
    """The rows of subjects of which the same is told: one for all of them, where they are many."""
    if several and len(names) >= _MANY:
        rest = len(names) - 1
        return [(f"{names[0]} and {rest} others", state, conditions) for state, conditions in told]
    return [(name, state, conditions) for name in names for state, conditions in told]


def _groups(subject: Subject) -> dict[str, list[str]]:
    """The conditions by state; a reason for not trying stands behind its condition."""
    groups: dict[str, list[str]] = {}
    for condition, said in subject.conditions.items():
        state, _, reason = said.partition(": ")
        told = f"{condition} ({reason})" if state == "not tried" and reason else condition
        groups.setdefault(state, []).append(told)
    return groups
