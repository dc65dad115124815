"""What `ops.py` measured, as rows that can be kept in a file, the goals that rows are held to, and the table of docs/ops.md."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field, replace

TIME_GOALS = {("linear_cross_entropy", "eager"): 1.1, ("linear_cross_entropy", "torch's chunked"): 0.8, ("rms_norm", "eager"): 0.25,
              ("rms_norm", "compile"): 0.7, ("swish", "eager"): 0.7, ("logsumexp", "eager"): 0.5}  # fmt: skip
PEAK_GOALS = {"linear_cross_entropy": 0.15, "rms_norm": 0.5, "logsumexp": 0.5}
SAVED_GOALS = {"swish": 0.5}


@dataclass(frozen=True)
class Goal:
    what: str
    found: float
    most: float

    def __str__(self) -> str:
        return f"{'pass' if self.found <= self.most else 'MISSED':6} {self.what:60} {self.found:7.3f} (goal <= {self.most:g})"


@dataclass(frozen=True)
class Row:
    """One op on so many threads: medians of ours over the others, formed within rounds; bytes on one thread only."""

    name: str
    threads: int
    ours_s: float
    ratios: dict[str, float]
    peaks: dict[str, int] = field(default_factory=dict)
    saved: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        rest = "  ".join(f"{other} {ratio:.2f}x" for other, ratio in self.ratios.items())
        line = f"{self.name:21} {self.threads} thread(s)  ours {self.ours_s * 1e3:8.2f} ms = {rest}"
        if not self.peaks:
            return line
        shown = "  ".join(f"{way} {size / 1e6:.0f} MB" for way, size in self.peaks.items())
        kept = f"{self.saved['ours'] / 1e6:.1f} of {self.saved['eager'] / 1e6:.1f} MB"
        return f"{line}\n{'':21} peak: {shown}; saved: {kept}"

    def goals(self) -> list[Goal]:
        found = [
            Goal(f"{name} time over {other}, {self.threads} thread(s)", self.ratios[other], most)
            for (name, other), most in TIME_GOALS.items()
            if name == self.name and other in self.ratios
        ]
        if self.peaks and self.name in PEAK_GOALS:
            share = self.peaks["ours"] / max(self.peaks["eager"], 1)
            found.append(Goal(f"{self.name} peak over eager", share, PEAK_GOALS[self.name]))
        if self.saved and self.name in SAVED_GOALS:
            share = self.saved["ours"] / self.saved["eager"]
            found.append(Goal(f"{self.name} saved over eager", share, SAVED_GOALS[self.name]))
        return found


def keep(file: str | None, found: Row | Goal) -> None:
    if file:
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
        with open(file, "a", encoding="utf-8") as out:
            print(json.dumps(asdict(found) | {"commit": head.stdout.strip()}), file=out)


def show(file: str) -> list[Goal]:
    """The table of all that was kept, the newest of each kind; below 1, ours takes less. In brackets: two threads."""
    rows: dict[tuple[str, int], Row] = {}
    other: dict[str, Goal] = {}
    commits: dict[str, str] = {}
    with open(file, encoding="utf-8") as kept:
        for data in map(json.loads, kept):
            commits[data["what"] if "what" in data else f"{data['name']} {data['threads']}"] = data.pop("commit")
            if "what" in data:
                other[data["what"]] = Goal(**data)
            else:
                row, key = Row(**data), (data["name"], data["threads"])
                if key in rows:  # what was measured again replaces what was measured before
                    known = rows[key]
                    row = replace(
                        row,
                        ratios=known.ratios | row.ratios,
                        peaks=row.peaks or known.peaks,
                        saved=row.saved or known.saved,
                    )
                rows[key] = row
    names = dict.fromkeys(name for name, _ in rows)
    print("| op | ours, ms | over eager | over torch.compile | peak over eager | kept for backward |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        both = [rows[name, threads] for threads in (1, 2) if (name, threads) in rows]
        times = [" ".join(_brackets(i, f"{row.ours_s * 1e3:.2f}") for i, row in enumerate(both))]
        for way in ("eager", "compile"):
            shown = [_brackets(i, f"{row.ratios[way]:.2f}") for i, row in enumerate(both) if way in row.ratios]
            times.append(" ".join(shown))
        peaks, saved = both[0].peaks, both[0].saved
        memory = ["", ""]
        if peaks:
            share = peaks["ours"] / max(peaks["eager"], 1)
            memory = [f"{share:.2f} ({peaks['ours'] / 1e6:.0f} of {peaks['eager'] / 1e6:.0f} MB)"]
            memory.append(f"{saved['ours'] / 1e6:.1f} of {saved['eager'] / 1e6:.1f} MB")
        print(f"| {' | '.join([name, *times, *memory])} |")
        for way in [way for way in both[0].ratios if way not in ("eager", "compile")]:
            shown = " ".join(_brackets(i, f"{row.ratios[way]:.2f}") for i, row in enumerate(both) if way in row.ratios)
            print(f"|   over {way} | | {shown} | | | |")
    print(f"Measured at commits {', '.join(dict.fromkeys(commits.values()))}.")
    return [goal for row in rows.values() for goal in row.goals()] + list(other.values())


def _brackets(place: int, text: str) -> str:
    return f"({text})" if place else text
