"""The older benchmarks, this tree beside another one: what each prints, and every line that differs.

    git worktree add --detach /tmp/before d293168
    python benchmarks/beside.py run --before /tmp/before [survey recall ...] [--sample]
    python benchmarks/beside.py table                   what was run until now, side by side
    python benchmarks/beside.py table --lines           and the lines that only one of the two printed

Each tree runs its own script on its own examples (both have grown since), with the same interpreter and the same packages.
`--sample` takes the smaller run that is written here, where the whole takes more than some minutes. Every run is kept with its
commit, CPU time and output in `--folder` (benchmarks/beside), so that one row can be run at a time. CPU time is that of all processes of a run.
The rows survey, recall and robustness download packages; guess.py says which ones it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")


@dataclass(frozen=True)
class Row:
    """A benchmark: its command, the smaller one, and a pattern of the lines with its figures."""

    whole: str
    sample: str
    figures: str


ROWS = {
    "survey": Row("survey.py", "", r"true \(|distinct findings|unjudged"),
    "recall": Row("recall.py --seed 0", "", r"found$"),
    "recall, another seed": Row("recall.py --seed 11", "", r"found$"),
    "robustness": Row("robustness.py", "robustness.py --mutants 500", r"crashes"),
    "guess": Row("guess.py", "guess.py snntorch gpytorch", r"count \(|held against|median"),
    "elements": Row("verify.py elements", "verify.py elements --quick", r"/"),
    "operators": Row("verify.py operators", "verify.py operators --quick", r"operators|checks|false alarm|verdict"),
    "mutants": Row("verify.py mutants", "verify.py mutants --quick", r"detect|named|mutants"),
    "levels": Row("levels.py quick standard --cpu", "levels.py quick standard --cpu --only matrix", r"median"),
    "first_verdict": Row("first_verdict.py", "first_verdict.py --rounds 2", r"Function|first verdict|import|wrong"),
    "lint_speed": Row("lint_speed.py", "lint_speed.py --rounds 5", r" x "),
    "profile_cases": Row(
        "profile_cases.py", "profile_cases.py --no-medians cat_in_loop clones square_loops", r"goal|factor 2|named"
    ),
}


@dataclass(frozen=True)
class Ran:
    """One row in one tree."""

    name: str
    tree: str  # "before" or "now"
    commit: str
    command: str
    cpu_seconds: float
    status: int
    output: str


def run(tree: Path, word: str, name: str, command: str) -> Ran:
    commit = subprocess.run(["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    script, *options = command.split()
    with tempfile.TemporaryDirectory(prefix="gradsmith-beside-") as cache:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "GRADSMITH_CACHE_DIR": cache}
        before = _children()
        call = [sys.executable, str(tree / "benchmarks" / script), *options]
        done = subprocess.run(call, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        spent = _children() - before
    output = done.stdout if done.returncode in (0, 1) else done.stdout + done.stderr[-2000:]
    return Ran(name, word, commit.stdout.strip(), command, spent, done.returncode, output)


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _share_packages(before: Path) -> None:
    """Released packages are downloaded once."""
    mine, theirs = (tree / "benchmarks" / "survey" / "packages" for tree in (HERE, before))
    mine.mkdir(exist_ok=True, parents=True)
    if not theirs.exists():
        theirs.symlink_to(mine)


def _kept(folder: Path) -> dict[tuple[str, str], Ran]:
    files = sorted(folder.glob("*.json"))
    found = [Ran(**json.loads(file.read_text(encoding="utf-8"))) for file in files]
    return {(one.name, one.tree): one for one in found}


def table(kept: dict[tuple[str, str], Ran], *, lines: bool) -> None:
    for name, row in ROWS.items():
        before, now = kept.get((name, "before")), kept.get((name, "now"))
        if before is None or now is None:
            print(f"\n## {name}: not run")
            continue
        print(f"\n## {name}: `{now.command}`, {before.commit} beside {now.commit}")
        print(
            f"CPU time {before.cpu_seconds:.0f} s beside {now.cpu_seconds:.0f} s; exit {before.status} beside {now.status}"
        )
        for one in (before, now):
            for line in one.output.splitlines():
                if re.search(row.figures, line):
                    print(f"  {one.tree:6} | {line.strip()[:160]}")
        if lines:
            _print_differences(before, now)


def _print_differences(before: Ran, now: Ran) -> None:
    """Lines of one that the other does not have, numbers apart: times differ in every run."""
    bare = [{NUMBER.sub("#", line.strip()): line.strip() for line in one.output.splitlines()} for one in (before, now)]
    for mark, own, other in (("-", bare[0], bare[1]), ("+", bare[1], bare[0])):
        for key, line in own.items():
            if key and key not in other:
                print(f"  {mark} {line[:200]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument(
        "names", nargs="*", choices=[[], *ROWS], metavar="ROW", help=f"of {', '.join(ROWS)} (default: all)"
    )
    parser.add_argument("--before", type=Path, help="the other tree")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / "benchmarks" / "beside")
    parser.add_argument("--lines", action="store_true")
    chosen = parser.parse_args()
    chosen.folder.mkdir(exist_ok=True, parents=True)
    if chosen.what == "run":
        if chosen.before is None:
            parser.error("run wants --before TREE")
        before = chosen.before.resolve()
        _share_packages(before)
        for name in chosen.names or ROWS:
            command = (chosen.sample and ROWS[name].sample) or ROWS[name].whole
            for tree, word in ((before, "before"), (HERE, "now")):
                one = run(tree, word, name, command)
                file = chosen.folder / f"{name.replace(', ', '_').replace(' ', '_')}.{word}.json"
                file.write_text(json.dumps(asdict(one), indent=1), encoding="utf-8")
                print(f"{name}, {word}: {one.cpu_seconds:.0f} s of CPU time, exit {one.status}", flush=True)
    table(_kept(chosen.folder), lines=chosen.lines)


if __name__ == "__main__":
    main()
