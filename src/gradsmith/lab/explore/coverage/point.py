"""One thing that can be reached: a line, or one side of one condition."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

NOT_NONE = "something else than None"
Sort = Literal["line", "test", "loop", "operation"]


@dataclass(frozen=True, order=True)
class Point:
    """`side` of `what` in `line`: the true side of `x > 0`, a loop that ran once, a line that ran."""

    line: int
    sort: Sort
    what: str = ""  # as the reader wrote it, or the name of the operation
    side: str = "ran"
    phase: str = ""  # of an operation: forward or backward
    path: str = ""  # the file, where it is not the subject's own: an inherited forward, say

    @property
    def place(self) -> str:
        """The line, as a sentence calls it: "line 17", "line 17 of base.py"."""
        return f"line {self.line}{self.file}"

    @property
    def file(self) -> str:
        return f" of {os.path.basename(self.path)}" if self.path else ""

    def missed(self) -> str:
        """What did not happen, in words: "line 17 never ran"."""
        if self.sort == "line":
            return f"{self.place} never ran"
        where = f"{self.place}: `{self.what}`" if self.what else f"{self.place}: the condition"
        if self.sort == "loop":
            return f"{self.place}: the loop never ran {self.side}"
        if self.side == NOT_NONE:
            return f"{where} was always None"
        if self.sort == "test":
            return f"{where} was never {self.side}"
        if self.side.startswith("was "):
            return f"{where} was never {self.side.removeprefix('was ')}"
        return f"{where} never {self.side}"


@dataclass(frozen=True)
class SidesTaken:
    """What one run took, and what it could have taken instead, with the positions of the inputs that decide."""

    taken: frozenset[Point]
    possible: Mapping[Point, frozenset[int]]


@dataclass
class Coverage:
    """Everything that is known of a subject's sides. `judged` are those on which the gradient was held against the truth."""

    possible: dict[Point, frozenset[int]] = field(default_factory=dict)
    ran: set[Point] = field(default_factory=set)
    judged: set[Point] = field(default_factory=set)

    def add(self, seen: SidesTaken, *, judged: bool) -> set[Point]:
        """What of it is new."""
        new = set(seen.taken) - self.ran
        for point, origins in seen.possible.items():
            self.possible[point] = self.possible.get(point, frozenset()) | origins
        self.ran |= seen.taken
        if judged:
            self.judged |= seen.taken
        return new

    @property
    def open(self) -> list[Point]:
        """What never ran, in the order of the source."""
        return sorted(set(self.possible) - self.ran)

    def to_json(self) -> list[dict[str, Any]]:
        states = {p: "judged" if p in self.judged else "ran" if p in self.ran else "never" for p in self.possible}
        return _as_rows(states)


def _as_rows(states: Mapping[Point, str]) -> list[dict[str, Any]]:
    """One row for each point; the file is left out where it is the subject's own."""
    return [
        {name: value for name, value in asdict(p).items() if name != "path" or value} | {"state": states[p]}
        for p in sorted(states)
    ]


def told(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures and sentences for a report, from the rows of one coverage or of several."""
    order = ("never", "ran", "judged")
    best: dict[Point, str] = {}
    for row in rows:
        point = Point(row["line"], row["sort"], row["what"], row["side"], row["phase"], row.get("path", ""))
        best[point] = max(best.get(point, "never"), row["state"], key=order.index)
    lines = [p for p in best if p.sort == "line"]
    sides = [p for p in best if p.sort != "line"]
    # What stands in a line that never ran goes without saying.
    silent = {(p.path, p.line) for p in lines if best[p] == "never"}
    missed = sorted(p for p in best if best[p] == "never" and (p.sort == "line" or (p.path, p.line) not in silent))
    unjudged = sorted(p for p in best if best[p] == "ran")
    return {
        "lines": len(lines),
        "lines reached": sum(best[p] != "never" for p in lines),
        "sides": len(sides),
        "sides reached": sum(best[p] != "never" for p in sides),
        "not reached": _together(missed),
        "reached, not judged": len(unjudged),
        "points": _as_rows(best),
    }


def _together(missed: list[Point]) -> list[str]:
    """One sentence each; lines that follow each other share one."""
    lines = sorted((p for p in missed if p.sort == "line"), key=lambda p: (p.path, p.line))
    said = [p.missed() for p in missed if p.sort != "line"]
    runs: list[list[Point]] = []
    for point in lines:
        if runs and runs[-1][-1].path == point.path and point.line - runs[-1][-1].line == 1:
            runs[-1].append(point)
        else:
            runs.append([point])
    told = [r[0].missed() if len(r) == 1 else f"lines {r[0].line} to {r[-1].line}{r[0].file} never ran" for r in runs]
    return [*told, *dict.fromkeys(said)]
