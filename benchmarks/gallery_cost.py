"""What a check of the gallery costs, this tree against another one: the same files, CPU time, in turns.

    git worktree add --detach /tmp/before d293168
    python benchmarks/gallery_cost.py --before /tmp/before [--levels quick standard] [--rounds 2] [--only PART] [--goal 1.0]

Only files that are the same in both trees count, and folders in which both examine as many subjects. The files of a folder go
through `gradsmith check FILE ...` of either tree, each with an empty cache, the other tree first in every second round; a run
that loads everything once is not counted. The interpreter is this one, and the packages are the same but for gradsmith, which is
compiled to bytecode in both trees, as pip does. CPU time is that of all processes that a check starts. --goal: exit status 1 above it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
GALLERY = Path("examples") / "gallery"
START = "import sys; from gradsmith.cli import main; sys.exit(main())"


@dataclass
class Cost:
    """Seconds of CPU time of one folder in the two trees, one number for each round; how many subjects each examined."""

    before: list[float] = field(default_factory=list)
    now: list[float] = field(default_factory=list)
    subjects: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return sum(self.now) / sum(self.before)


def seconds_of(tree: Path, files: list[Path], level: str) -> tuple[float, int]:
    """CPU time of a check, its workers included, and the number of its subjects."""
    with tempfile.TemporaryDirectory(prefix="gradsmith-cost-") as cache:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree / "src")}
        environment |= {"GRADSMITH_CACHE_DIR": f"{cache}/own", "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torch"}
        used = _children()
        command = [
            sys.executable,
            "-c",
            START,
            "check",
            *map(str, files),
            "--level",
            level,
            "--format",
            "json",
            "--exit-zero",
        ]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        spent = _children() - used
    return spent, len(json.loads(done.stdout)["subjects"]) if done.stdout.startswith("{") else 0


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def same_files(before: Path, only: str) -> dict[str, list[Path]]:
    """Files of the gallery that both trees have, letter for letter, relative to either, by folder."""
    folders: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((HERE / GALLERY).rglob("*.py")):
        file = path.relative_to(HERE)
        other = before / file
        if only in str(file) and other.is_file() and other.read_bytes() == path.read_bytes():
            folders[file.parent.name].append(file)
    return folders


def measured(before: Path, folders: dict[str, list[Path]], level: str, rounds: int) -> dict[str, Cost]:
    """Each folder in both trees, in turns, `rounds` times."""
    costs: dict[str, Cost] = defaultdict(Cost)
    smallest = min(folders.values(), key=len)[:1]
    for tree in (before, HERE):
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(tree / "src")], check=True)
        seconds_of(tree, smallest, level)
    for number in range(rounds):
        for name, files in folders.items():
            turns = [(before, "before"), (HERE, "now")]
            for tree, word in turns if number % 2 == 0 else reversed(turns):
                spent, subjects = seconds_of(tree, files, level)
                cost = costs[name]
                (cost.before if word == "before" else cost.now).append(spent)
                cost.subjects[word] = subjects
            print(f"  {level}, round {number + 1}: {_row(name, cost)}", file=sys.stderr, flush=True)
    return costs


def told(level: str, costs: dict[str, Cost]) -> float:
    """Print the table of one level; the ratio of all folders together comes back."""
    counted = {name: c for name, c in costs.items() if c.subjects["before"] == c.subjects["now"] > 0}
    before, now = (sum(sum(getattr(c, word)) for c in counted.values()) for word in ("before", "now"))
    ratios = [c.ratio for c in counted.values()]
    subjects, rounds = sum(c.subjects["now"] for c in counted.values()), len(next(iter(counted.values())).now)
    print(f"\n## {level}: {len(counted)} folders, {subjects} subjects, {rounds} round(s)")
    print(
        f"CPU time before {before / rounds:.1f} s, now {now / rounds:.1f} s: {now / before:.2f}x; median of folders {statistics.median(ratios):.2f}x"
    )
    for name in sorted(counted, key=lambda name: -counted[name].ratio):
        print(f"  {_row(name, counted[name])}")
    if left := sorted(costs.keys() - counted.keys()):
        print(f"not counted, since the trees do not examine the same subjects: {', '.join(left)}")
    return now / before


def _row(name: str, cost: Cost) -> str:
    before, now = statistics.mean(cost.before), statistics.mean(cost.now)
    return f"{name}: {before:.1f} -> {now:.1f} s ({cost.ratio:.2f}x)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other tree")
    parser.add_argument("--levels", nargs="*", default=["quick", "standard"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a path, to take some of the files")
    parser.add_argument(
        "--goal", type=float, help="exit 1 if all files together cost more than this many times as much"
    )
    chosen = parser.parse_args()
    before = chosen.before.resolve()
    folders = same_files(before, chosen.only)
    ratios = [told(level, measured(before, folders, level, chosen.rounds)) for level in chosen.levels]
    if chosen.goal is not None:
        raise SystemExit(any(ratio > chosen.goal for ratio in ratios))


if __name__ == "__main__":
    main()
