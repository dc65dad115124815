"""The evidence: run a benchmark, keep what it printed with machine, versions and commit, and write docs/evidence.md.

    python benchmarks/evidence.py run NAME ...     run these (all without a name), keep what they print, write the page
    python benchmarks/evidence.py run NAME -- OPTIONS    this one with these options, which are told on the page
    python benchmarks/evidence.py                  write the page from what is kept
    python benchmarks/evidence.py --list           the names and their commands

What is kept stands in benchmarks/evidence/NAME.json. A figure that is not there was not measured, and the page says so.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
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
    minutes: int = 5  # of CPU time, at most; for one that was not run, what to expect


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
    cpu: float = 0.0  # seconds, of all processes that it started


ENTRIES = (
    Entry("reach1", "Hidden bugs, set 1", "80 pairs of a wrong and a right Function, 40 right Functions, by somebody who knew only the README.",
          ("reach.py", "benchmarks/reach/set1"), "57 of 80 named (71 %), errors on 5 of 120 right files", minutes=60),
    Entry("reach2", "Hidden bugs, set 2", "The same, by somebody else.",
          ("reach.py", "benchmarks/reach/set2"), "67 of 80 named (84 %), errors on 4 of 120 right files", minutes=60),
    Entry("reach3", "Hidden bugs, set 3", "60 pairs and 40 right Functions, written after the fixes for the first two sets.",
          ("reach.py", "benchmarks/reach/set3"), "48 of 60 named (80 %), errors on 1 of 100 right files", minutes=45),
    Entry("reach4", "Hidden bugs, set 4", "32 pairs by an author who knows the explorer: they count less.",
          ("reach.py", "benchmarks/reach/set4"), "29 of 32 named (91 %), errors on 0 of 32 right files", minutes=15),
    Entry("reach6", "Hidden bugs, set 6", "60 pairs and 40 right Functions, by somebody who knew only the README; nothing was fixed for them.",
          ("reach.py", "benchmarks/reach/set6"), "49 of 60 named (82 %), errors on 0 of 100 right files", minutes=15),
    Entry("reach7", "Hidden bugs, set 7", "50 pairs and 40 right Functions, by somebody else who knew only the README.",
          ("reach.py", "benchmarks/reach/set7"), "41 of 50 named (82 %), errors on 1 of 90 right files", minutes=15),
    Entry("impoverished", "Mutants whose inputs hide the mistake", "Mutants of the gallery, declared inputs made poor by script until gradcheck passes.",
          ("impoverished.py",), "25 of a sample of 30 named (83 %)", minutes=90),
    Entry("mutants", "Mutants against gradcheck, gradgradcheck and opcheck", "One generic change to the source of right Functions.",
          ("verify.py", "mutants"), minutes=60),
    Entry("elements", "One wrong element", "One gradient element off by 1 % or 10 %, against gradcheck's fast mode.", ("verify.py", "elements")),
    Entry("check_grads", "One wrong element, JAX", "The same mistakes in a custom_vjp, against jax.test_util.check_grads.", ("check_grads.py",)),
    Entry("speed", "Time against gradcheck", "One Function judged by gradsmith and by gradcheck, slow and fast, in turns.", ("verify.py", "speed")),
    Entry("memory", "Memory against gradcheck", "What judging a 64x256->256 linear adds.", ("verify.py", "memory")),
    Entry("operators", "torch's own operators", "False alarms on op_db.", ("verify.py", "operators"), minutes=120),
    Entry("operators_explored", "torch's own operators, explored", "The same at level standard, one sample of each: what exploring adds.", ("verify.py", "operators", "--explored"), minutes=120),
    Entry("gallery_cost", "Cost of the gallery", "CPU time of a check, this tree against commit d293168, from before the explorer was written.", ("gallery_cost.py", "--before", "/tmp/before"), minutes=20),
    Entry("iterative", "Forwards that iterate", "Twelve solvers and transports, four of them wrong.", ("iterative.py",)),
    Entry("repair", "Repairs", "Wrong Functions whose mistakes a person wrote: is the proposed backward right?", ("repair.py", "--fresh"), minutes=30),
    Entry("fresh4", "Public Functions, fourth draw", "Functions of packages on PyPI that no file here mentions, drawn by seed; what the first run said, judged.",
          ("fresh.py", "table", "--name", "fourth")),
    Entry("fresh5", "Public Functions, fifth draw", "The same, drawn after the fixes for the fourth.", ("fresh.py", "table", "--name", "fifth")),
    Entry("fresh6", "Public Functions, sixth draw", "The same, drawn after the fixes for the fifth.", ("fresh.py", "table", "--name", "sixth")),
    Entry("coverage", "Lines and sides reached", "On public Functions, inputs guessed.", ("coverage.py", "run"), minutes=120),
    Entry("coverage_cost", "Cost of coverage", "CPU time of a check at level standard with coverage, against one without, in turns.",
          ("coverage.py", "cost", "benchmarks/reach/set6", "--rounds", "1"), minutes=15),
    Entry("through6", "The same through other code", "Functions of set 6 called through a lambda, a partial and a module: the same findings on the same lines?",
          ("through.py", "benchmarks/reach/set6", "--sample", "36"), minutes=15),
    Entry("beside", "The older benchmarks, before and after", "Each row of the table of the second plan, in this tree and in commit d293168.",
          ("beside.py", "table"), minutes=120),
    Entry("guess", "Guessed inputs", "How often a file needs no inputs.", ("guess.py",), minutes=60),
    Entry("levels", "Time of each level", "One subject of the gallery after the other, in a process that runs already.", ("levels.py",), minutes=30),
    Entry("first_verdict", "The first verdict", "From a cold start, over `import torch`.", ("first_verdict.py",)),
    Entry("second_run", "The second run", "A project of 50 Functions in which nothing has changed.", ("second_run.py",)),
    Entry("forwards", "Runs of the subject", "Forwards and backwards of one standard check.", ("forwards.py",)),
    Entry("lint_speed", "Lint against ruff", "The torch package, cold and warm, interleaved.", ("lint_speed.py",)),
    Entry("survey", "Lint on packages", "Findings in six packages, judged.", ("survey.py",)),
    Entry("projects4", "Lint on projects, fourth draw", "What lint said of 20 drawn projects in its first run, judged.", ("projects.py", "table", "--name", "fourth")),
    Entry("projects6", "Lint on projects, sixth draw", "The same, of 40 projects drawn from names of the index, before the fixes for it.",
          ("projects.py", "table", "--name", "sixth", "--seed", "5618")),
    Entry("projects7", "Lint on projects, seventh draw", "33 projects of names that nobody had asked for; what the first run said, judged.",
          ("projects.py", "table", "--name", "seventh", "--seed", "5619")),
    Entry("projects8", "Lint on projects, eighth draw", "19 projects, drawn after the fixes for the seventh.",
          ("projects.py", "table", "--name", "eighth", "--seed", "5620")),
    Entry("projects9", "Lint on projects, ninth draw", "18 projects, drawn after the fixes for the eighth; most of what was found stands in earlier draws, too.",
          ("projects.py", "table", "--name", "ninth", "--seed", "5621")),
    Entry("recall", "Lint, planted defects", "Defects planted into clean Functions.", ("recall.py",)),
    Entry("torchfix", "The same defects, TorchFix", "What TorchFix says of the same planted defects.", ("torchfix_recall.py",)),
    Entry("robustness", "Lint does not crash", "Files of site-packages and mutated sources.", ("robustness.py",), minutes=20),
    Entry("kernels", "Triton kernels", "Kernels of released packages under the interpreter.", ("kernels.py", "verdicts"), minutes=120),
    Entry("planted", "Triton kernels, planted faults", "Small kernels with one fault of memory each.", ("kernels.py", "planted"), minutes=15),
    Entry("derive", "Deriving backward", "Forwards of packages on PyPI.", ("derive.py", "run", "/tmp/derive"), "47 of 120 derived and verified, none wrong", minutes=30),
    Entry("formulas", "Deriving backward of formulas", "40 formulas through `gradsmith new`.", ("derive.py", "formulas"), minutes=10),
    Entry("ops", "Ops", "Time and memory over eager and torch.compile, interleaved.", ("ops.py",), minutes=12),
    Entry("wrap", "Foreign code", "Overhead, workers, stated error against true error.", ("wrap.py",)),
    Entry("recurrent", "Recurrent layers", "Against loops, nn.RNN, nn.GRU, nn.LSTM and torch.compile; `--jax PYTHON` adds jax.lax.scan.", ("recurrent.py",), minutes=40),
    Entry("engine_faults", "Broken plans", "Faults put into the compiled loop of a recurrent layer: does the self-check reject them?", ("engine_faults.py",)),
    Entry("profile_cases", "Profile", "Slow and fast pairs: is the cause named, is the gain as predicted?", ("profile_cases.py",), minutes=10),
    Entry("recording", "Cost of recording", "A training step of 20 ms that calls 100 small Functions.", ("recording_overhead.py",)),
    Entry("plugin", "Cost of the pytest plugin", "A project of 200 tests with 10 Functions.", ("plugin_overhead.py",), minutes=10),
    Entry("server", "The editor server", "Diagnostics after each typed letter in a file of 1,000 lines.", ("server.py", "change")),
    Entry("faults", "Hostile files and faulty subjects", "Is there always a report, and is nothing left behind?", ("faults.py",), minutes=60),
    Entry("when_not_to", "When not to write a Function", "What a call of a custom Function costs, and a loop over time.", ("when_not_to.py",)),
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
    """Run the benchmark and keep the end of what it prints; what it shows on stderr is progress. One that crashes measures nothing."""
    script, *options = entry.command
    used = cpu_seconds()
    called = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(called.stderr, end="", file=sys.stderr, flush=True)
    if called.returncode < 0 or called.stderr.rstrip().rpartition("Traceback (most recent call last):\n")[1]:
        sys.exit(f"{entry.name} crashed with status {called.returncode}; nothing is kept")
    lines = called.stdout.rstrip().splitlines()
    cut = [f"... {len(lines) - MOST_LINES} lines before"] if len(lines) > MOST_LINES else []
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    command = " ".join(["python", f"benchmarks/{script}", *options])
    output = "\n".join([*cut, *lines[-MOST_LINES:]])
    return Result(
        command,
        called.returncode,
        output,
        commit.stdout.strip(),
        date.today().isoformat(),
        machine(),
        versions(),
        round(cpu_seconds() - used, 1),
    )


def cpu_seconds() -> float:
    """CPU time of the children that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


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
        split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
        chosen, options = sys.argv[2:split], tuple(sys.argv[split + 1 :])
        unknown = [name for name in chosen if name not in names]
        if unknown:
            sys.exit(f"no benchmark is called {unknown[0]!r}; --list shows the names")
        KEPT.mkdir(exist_ok=True)
        for name in chosen or names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            text = json.dumps(
                asdict(run(replace(names[name], command=names[name].command + options))), indent=1, ensure_ascii=False
            )
            (KEPT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
