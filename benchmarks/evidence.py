"""The evidence: run a benchmark, keep what it printed with machine, versions and commit, and write docs/evidence.md.

    python benchmarks/evidence.py run NAME ...     run these (all without a name), keep what they print, write the page
    python benchmarks/evidence.py                  write the page from what is kept
    python benchmarks/evidence.py --list           the names and their commands

What is kept stands in benchmarks/evidence/NAME.json. A figure that is not there was not measured, and the page says so.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "benchmarks" / "evidence"
PAGE = ROOT / "docs" / "evidence.md"
MOST_LINES = 45  # of what a benchmark prints, the last ones: its table
VERSIONS = ("torch", "numpy", "scipy", "triton", "ruff", "jax")


@dataclass(frozen=True)
class Entry:
    """One benchmark. `first` is the figure of the first run on code that nobody had seen, where there was one."""

    name: str
    title: str
    shows: str
    command: tuple[str, ...]
    first: str = ""


@dataclass(frozen=True)
class Result:
    """What a run printed, and where and when."""

    command: str
    status: int
    output: str
    commit: str
    day: str
    machine: str
    versions: str


ENTRIES = (
    Entry("reach1", "Hidden bugs, set 1", "80 pairs of a wrong and a right Function, 40 right Functions, by somebody who knew only the README.",
          ("reach.py", "benchmarks/reach/set1"), "57 of 80 named (71 %), errors on 5 of 120 right files"),
    Entry("reach2", "Hidden bugs, set 2", "The same, by somebody else; nothing was fixed for it.",
          ("reach.py", "benchmarks/reach/set2"), "67 of 80 named (84 %), errors on 4 of 120 right files"),
    Entry("impoverished", "Mutants whose inputs hide the mistake", "Mutants of the gallery, declared inputs made poor by script until gradcheck passes.",
          ("impoverished.py",), "25 of a sample of 30 named (83 %)"),
    Entry("mutants", "Mutants against gradcheck, gradgradcheck and opcheck", "One generic change to the source of right Functions.",
          ("verify.py", "mutants")),
    Entry("elements", "One wrong element", "One gradient element off by 1 % or 10 %, against gradcheck's fast mode.", ("verify.py", "elements")),
    Entry("operators", "torch's own operators", "False alarms on op_db.", ("verify.py", "operators")),
    Entry("iterative", "Forwards that iterate", "Twelve solvers and transports, four of them wrong.", ("iterative.py",)),
    Entry("fresh", "Public Functions", "Functions of packages on PyPI that no file here mentions, drawn by seed.", ("fresh.py", "table"),
          "150 Functions: 30 errors, 13 of them false, on 9 Functions"),
    Entry("coverage", "Lines and sides reached", "On public Functions, inputs guessed.", ("coverage.py",)),
    Entry("guess", "Guessed inputs", "How often a file needs no inputs.", ("guess.py",)),
    Entry("first_verdict", "The first verdict", "From a cold start, over `import torch`.", ("first_verdict.py",)),
    Entry("forwards", "Runs of the subject", "Forwards and backwards of one standard check.", ("forwards.py",)),
    Entry("lint_speed", "Lint against ruff", "The torch package, cold and warm, interleaved.", ("lint_speed.py",)),
    Entry("survey", "Lint on packages", "Findings in six packages, judged.", ("survey.py",)),
    Entry("recall", "Lint, planted defects", "Defects planted into clean Functions.", ("recall.py",)),
    Entry("robustness", "Lint does not crash", "Files of site-packages and mutated sources.", ("robustness.py",)),
    Entry("kernels", "Triton kernels", "Liger and fla under the interpreter.", ("kernels.py",)),
    Entry("derive", "Deriving backward", "Forwards of packages on PyPI.", ("derive.py",), "47 of 120 derived and verified, none wrong"),
    Entry("ops", "Ops", "Time and memory over eager and torch.compile, interleaved.", ("ops.py",)),
    Entry("wrap", "Foreign code", "Overhead, workers, stated error against true error.", ("wrap.py",)),
    Entry("recurrent", "Recurrent layers", "Against loops, nn.RNN, nn.GRU and nn.LSTM.", ("recurrent.py",)),
    Entry("profile_cases", "Profile", "Slow and fast pairs: is the cause named, is the gain as predicted?", ("profile_cases.py",)),
    Entry("house", "The house", "Cycles, rule names outside rules, readers of source, torch modes.", ("house.py",)),
)  # fmt: skip


def machine() -> str:
    name = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    return f"{os.cpu_count()} cores, {name or platform.machine()}, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).is_file() else []


def versions() -> str:
    found = []
    for name in VERSIONS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def run(entry: Entry) -> Result:
    """Run the benchmark and keep the end of what it prints; what it shows on stderr is progress."""
    script, *options = entry.command
    called = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    lines = called.stdout.rstrip().splitlines()
    cut = [f"... {len(lines) - MOST_LINES} lines before"] if len(lines) > MOST_LINES else []
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    command = " ".join(["python", f"benchmarks/{script}", *options])
    output = "\n".join([*cut, *lines[-MOST_LINES:]])
    return Result(
        command, called.returncode, output, commit.stdout.strip(), date.today().isoformat(), machine(), versions()
    )


def kept(entry: Entry) -> Result | None:
    file = KEPT / f"{entry.name}.json"
    return Result(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def page() -> str:
    """docs/evidence.md: for every benchmark the command, the first run, and what it printed last."""
    lines = [
        "# Figures",
        "",
        "Every figure comes from a command in the repository. `make bench` runs them all and writes this page; `python",
        "benchmarks/evidence.py run NAME` runs one. A first run is a run on code that nobody had seen. Later runs come after the",
        "mistakes they showed were fixed, so they are optimistic. Times are ratios of alternatives that ran interleaved.",
        "",
        "| benchmark | first run | last run |",
        "| --- | --- | --- |",
    ]
    for entry in ENTRIES:
        last = kept(entry)
        when = f"{last.day}, commit {last.commit}" if last is not None else "not run with this script yet"
        lines.append(f"| [{entry.title}](#{entry.name}) | {entry.first or '-'} | {when} |")
    for entry in ENTRIES:
        last = kept(entry)
        if last is None:
            lines += ["", f"## {entry.title} {{#{entry.name}}}", "", entry.shows, "", f"`python benchmarks/{' '.join(entry.command)}`. Not run with this script yet."]  # fmt: skip
            continue
        missed = "" if last.status == 0 else f" It ended with status {last.status}: a goal was missed."
        lines += [
            "",
            f"## {entry.title} {{#{entry.name}}}",
            "",
            f"{entry.shows} `{last.command}`, commit {last.commit}, {last.day}; {last.machine}; {last.versions}.{missed}",
            *(["", f"First run: {entry.first}."] if entry.first else []),
            "",
            "```",
            last.output,
            "```",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    if "--list" in sys.argv:
        for entry in ENTRIES:
            print(f"{entry.name:14} python benchmarks/{' '.join(entry.command)}")
        return
    if sys.argv[1:2] == ["run"]:
        names = {entry.name: entry for entry in ENTRIES}
        unknown = [name for name in sys.argv[2:] if name not in names]
        if unknown:
            sys.exit(f"no benchmark is called {unknown[0]!r}; --list shows the names")
        KEPT.mkdir(exist_ok=True)
        for name in sys.argv[2:] or names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            text = json.dumps(asdict(run(names[name])), indent=1, ensure_ascii=False)
            (KEPT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
