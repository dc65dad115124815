"""Coverage on the source: which lines ran, and which sides of each condition were reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradsmith.findings import Subject
from gradsmith.report.escaping import escaped
from gradsmith.report.page.source import file_at
from gradsmith.report.place import shown_path
from gradsmith.source.file import FileModel

Row = Mapping[str, Any]
_REACH = 20


@dataclass(frozen=True)
class Condition:
    """A condition as the reader wrote it, and (judged | ran | never, side) for each of its sides."""

    what: str
    sides: list[tuple[str, str]]


@dataclass(frozen=True)
class CoveredLine:
    """A line of the source; `state` is empty where there is nothing to run."""

    number: int
    text: str
    state: str
    conditions: list[Condition]


@dataclass(frozen=True)
class Covered:
    """The functions of a subject with what was reached of them. Where the file has changed there are only the sentences."""

    summary: str
    missed: list[str] = field(default_factory=list)
    files: list[tuple[str, list[list[CoveredLine]]]] = field(default_factory=list)


def covered(subject: Subject) -> Covered | None:
    """None where a check watched nothing."""
    found = subject.coverage
    if not found.get("points"):
        return None
    lines = f"{found['lines reached']} of {found['lines']} lines"
    sides = f", {found['sides reached']} of {found['sides']} sides of conditions" if found["sides"] else ""
    paths: dict[str, list[Row]] = {}
    for row in found["points"]:
        paths.setdefault(row.get("path") or subject.path or "", []).append(row)
    files = [(shown_path(path), blocks) for path, rows in paths.items() if (blocks := _blocks(path, rows))]
    return Covered(f"{lines}{sides}", list(found["not reached"]), files)


def _blocks(path: str, rows: Sequence[Row]) -> list[list[CoveredLine]]:
    """The lines of each function that something is known about, in the order of the source."""
    file = file_at(path)
    if file is None or not all(_stands_there(file, row) for row in rows):
        return []
    by_line: dict[int, list[Row]] = {}
    for row in rows:
        by_line.setdefault(row["line"], []).append(row)
    spans: list[tuple[int, int]] = []
    for number in sorted(by_line):
        if not spans or number > spans[-1][1]:
            spans.append(_span(file, number))
    return [_dedented([_line(file, n, by_line.get(n, ())) for n in range(a, b + 1)]) for a, b in spans]


def _dedented(lines: list[CoveredLine]) -> list[CoveredLine]:
    """Without the blanks that all of them begin with: a phone shows 40 letters."""
    first = lines[0].text
    shift = len(first) - len(first.lstrip(" "))
    return [replace(line, text=line.text[min(shift, len(line.text) - len(line.text.lstrip(" "))) :]) for line in lines]


def _stands_there(file: FileModel, row: Row) -> bool:
    """Does the file still have this line, and the condition in it? (A long one begins above it, or ends below.)"""
    number, what = row["line"], "".join(row["what"].split())
    if not 1 <= number <= len(file.lines):
        return False
    if row["sort"] == "operation":  # may be the name of an operation that the source does not have
        return True
    before, here, after = ("".join("".join(part).split()) for part in _around(file.lines, number))
    at = (before + here + after).find(what, max(0, len(before) - len(what)))
    return 0 <= at < len(before) + max(1, len(here))


def _around(lines: Sequence[str], number: int) -> tuple[Sequence[str], str, Sequence[str]]:
    return lines[max(0, number - 1 - _REACH) : number - 1], lines[number - 1], lines[number : number + _REACH]


def _span(file: FileModel, number: int) -> tuple[int, int]:
    node = file.function_at(number, outermost=True)
    if node is None or node.end_lineno is None:
        return number, number
    return node.lineno, max(node.end_lineno, number)


def _line(file: FileModel, number: int, rows: Iterable[Row]) -> CoveredLine:
    state, asked = "", dict[tuple[str, str], list[tuple[str, str]]]()
    for row in rows:
        if row["sort"] == "line":
            state = row["state"]
        else:
            name = "loop" if row["sort"] == "loop" else row["what"] or "condition"
            side = f"ran {row['side']}" if row["sort"] == "loop" else row["side"]
            asked.setdefault((name, row["phase"]), []).append((row["state"], side))
    both = {name for name, phase in asked if phase == "forward" and (name, "backward") in asked}
    conditions = [Condition(f"{name} ({phase})" if name in both else name, s) for (name, phase), s in asked.items()]
    return CoveredLine(number, escaped(file.lines[number - 1], "\t"), state, conditions)
