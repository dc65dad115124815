"""What `recurrent.py` measured, as rows that can be kept in a file, and the goals that rows are held to."""

from __future__ import annotations

import json
import statistics
import subprocess
from dataclasses import asdict, dataclass, field

from recurrent_cases import SHAPES, Case

AGAINST_UNBIND = ("rnn", "gru", "lstm", "layer-norm-lstm", "lif")


@dataclass(frozen=True)
class Goal:
    """One figure that must be reached."""

    what: str
    found: float
    wanted: float
    most: bool = False

    @property
    def reached(self) -> bool:
        return self.found <= self.wanted if self.most else self.found >= self.wanted

    def __str__(self) -> str:
        sign = "<=" if self.most else ">="
        return (
            f"{'pass' if self.reached else 'MISSED':6} {self.what:60} {self.found:9.3g} (goal {sign} {self.wanted:g})"
        )


@dataclass(frozen=True)
class Row:
    """One measured case: for every alternative, its seconds over ours in each round."""

    cell: str
    shape: str
    threads: int
    ours_s: float
    ratios: dict[str, list[float]]
    compile_s: dict[str, float]
    """What alternatives took to compile, and gradsmith to plan."""
    first: dict[str, list[float]] = field(default_factory=dict)
    """The same ratios for the first of two calls in a row."""

    @classmethod
    def of(cls, cell: str, shape: str, threads: int, case: Case, compile_s: dict[str, float]) -> Row:
        def over_ours(seconds: dict[str, list[float]]) -> dict[str, list[float]]:
            own = seconds["gradsmith"]
            return {way: [a / b for a, b in zip(s, own)] for way, s in seconds.items() if way != "gradsmith"}

        ours = statistics.median(case.seconds["gradsmith"])
        return cls(cell, shape, threads, ours, over_ours(case.seconds), compile_s, over_ours(case.first_seconds))

    def quartiles(self, way: str, first: bool = False) -> tuple[float, float, float]:
        ratios = self.first if first else self.ratios
        low, middle, high = statistics.quantiles(ratios[way], n=4, method="inclusive")
        return low, middle, high

    def __str__(self) -> str:
        columns = []
        for way in self.ratios:
            low, middle, high = self.quartiles(way)
            columns.append(f"{way} {middle:.2f} [{low:.2f}, {high:.2f}]")
            if way.startswith(("nn.", "jax", "torch.compile")):
                low, middle, _ = self.quartiles(way, first=True)
                columns.append(f"(first {middle:.2f} [{low:.2f}])")
        columns += [f"{way} compiles in {seconds:.2f} s" for way, seconds in self.compile_s.items()]
        name = f"{self.cell:16} {self.shape:11} {self.threads} thread(s) {self.ours_s * 1e3:8.2f} ms  "
        return name + "  ".join(columns)

    def goals(self) -> list[Goal]:
        label = f"{self.cell} {self.shape}{' 2 threads' if self.threads == 2 else ''}"
        small = self.shape.startswith("1x32")
        wanted = {"x[t]": 30 if small else 2, "unbind": 25 if small else 1.5} if self.threads == 1 else {}
        if self.cell == "linear recurrence":
            wanted = {"unbind": 15} if self.threads == 1 else {}
        elif self.cell not in AGAINST_UNBIND:
            wanted.pop("unbind", None)
        if self.shape not in SHAPES and self.cell != "linear recurrence":
            wanted = {}
        wanted |= {"nn.LSTM": 1.0, "nn.RNN": 1.3, "nn.GRU": 1.3, "torch.compile": 1.5}
        goals = [
            Goal(f"{label} over {way}", self.quartiles(way)[0], wanted[way]) for way in self.ratios if way in wanted
        ]
        jax = [self.quartiles(way)[0] for way in self.ratios if way.startswith("jax")]
        if jax and self.threads == 1:
            goals.append(Goal(f"{label} over jax.lax.scan", min(jax), 1.2))
        for way, share in (("jax", 1.0), ("torch.compile", 0.05)):
            if way in self.compile_s:
                planning = self.compile_s["gradsmith"] / self.compile_s[way]
                goals.append(Goal(f"{label} planning over compiling of {way}", planning, share, most=True))
        return goals


def keep(file: str, row: Row) -> None:
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    with open(file, "a", encoding="utf-8") as out:
        print(json.dumps(asdict(row) | {"commit": head.stdout.strip()}), file=out)


def show(file: str) -> list[Row]:
    """All rows that were kept, as a table in Markdown: median [lower quartile]; of JAX's two ways, the quicker one."""
    newest: dict[tuple[object, ...], Row] = {}
    commits: dict[tuple[object, ...], str] = {}
    with open(file, encoding="utf-8") as kept:
        for data in map(json.loads, kept):
            commit = data.pop("commit")
            row = Row(**data)
            key = (row.cell, row.shape, row.threads)
            if key in newest:  # what was measured again replaces what was measured before
                before = newest[key]
                row = Row(
                    row.cell, row.shape, row.threads, row.ours_s, before.ratios | row.ratios,
                    before.compile_s | row.compile_s, before.first | row.first,
                )  # fmt: skip
            newest[key], commits[key] = row, commit
    ways = [way for way in dict.fromkeys(way for row in newest.values() for way in row.ratios) if "jax" not in way]
    print(f"| cell | shape | threads | ours, ms | {' | '.join([*ways, 'JAX', 'JAX, first call'])} |")
    print(f"|{' --- |' * (len(ways) + 6)}")
    for row in newest.values():
        cells = [_shown(row.quartiles(way)) if way in row.ratios else "" for way in ways]
        both = [way for way in row.ratios if way.startswith("jax")]
        for first in (False, True):
            cells.append(_shown(min(row.quartiles(way, first) for way in both)) if both else "")
        print(f"| {row.cell} | {row.shape} | {row.threads} | {row.ours_s * 1e3:.2f} | {' | '.join(cells)} |")
    print(f"Measured at commits {', '.join(dict.fromkeys(commits.values()))}.")
    return list(newest.values())


def _shown(quartiles: tuple[float, float, float]) -> str:
    low, middle, _ = quartiles
    digits = 2 if middle < 20 else 0
    return f"{middle:.{digits}f} [{low:.{digits}f}]"
