"""How long lint takes on the installed torch package, beside ruff and bare parsing, interleaved in one run.

    python benchmarks/lint_speed.py [--rounds 15] [--package torch] [--output benchmarks/results/lint_speed.json]
    python benchmarks/lint_speed.py --projects first [--rounds 15] [--pause 0]   the projects of benchmarks/projects.py, one after the other
    python benchmarks/lint_speed.py --start [--rounds 15]                   start-up: one small file, with and without a Function
    python benchmarks/lint_speed.py --cpu [--rounds 15]                     the CPU time of cold runs, for a machine that others use

Every round runs each contestant once, in turn, so that whatever else the machine does hits all of them; each round begins
with another one, in case the machine is slower after ten seconds of parsing. Bare parsing, which nobody
comes near, is run in three rounds only. The figures are medians of wall time; each contestant is a process of its own, as users start it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

SLOWEST, SLOW_ROUNDS = "ast.parse", 3
PARSE = """
import ast, os, sys, warnings
warnings.simplefilter("ignore")
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as stream:
                try:
                    ast.parse(stream.read())
                except SyntaxError:
                    pass
"""


def contestants(folder: str, scratch: Path) -> dict[str, list[str]]:
    """Name to command. Warm ones are run once before the clock starts."""
    ours, theirs = (shutil.which(name) or str(Path(sys.executable).parent / name) for name in ("gradsmith", "ruff"))
    gradsmith = [ours, "lint", folder, "--isolated", "--exit-zero", "--format", "concise"]
    ruff = [
        theirs,
        "check",
        "--isolated",
        "-q",
        "--exit-zero",
    ]
    return {
        "gradsmith cold": [*gradsmith, "--no-cache"],
        "gradsmith warm": gradsmith,
        "ruff cold": [*ruff, "--no-cache", folder],
        "ruff warm": [*ruff, "--cache-dir", str(scratch / "ruff"), folder],
        SLOWEST: [sys.executable, "-c", PARSE, folder],
    }


def environment(**more: str) -> dict[str, str]:
    """As users start it. What is installed brings compiled modules; a setting that keeps Python from writing them would time the compiler."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def seconds(command: Sequence[str], around: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, env=around, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def of_processors(folder: str, rounds: int) -> None:
    """CPU time of all processes of both, cold and in turns: it hardly depends on who else uses the machine."""
    import resource

    def used() -> float:
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return now.ru_utime + now.ru_stime

    commands = {name: command for name, command in contestants(folder, Path("/tmp")).items() if name in COLD}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            before = used()
            seconds(command, environment())
            taken[name] += [used() - before] if number else []  # the first one warms up the disk
    ours, theirs = (statistics.median(taken[name]) for name in COLD)
    print(f"{folder}: CPU time {ours:.3f} s, ruff {theirs:.3f} s: {ours / theirs:.2f} x ({rounds} rounds)")


def measure(folder: str, rounds: int, only: Sequence[str] = ()) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as scratch:
        around = environment(GRADSMITH_CACHE_DIR=f"{scratch}/gradsmith")
        commands = {n: c for n, c in contestants(folder, Path(scratch)).items() if not only or n in only}
        for command in commands.values():
            seconds(command, around)
        taken: dict[str, list[float]] = {name: [] for name in commands}
        names = list(commands)
        for number in range(rounds):
            start = number % len(names)
            for name in (*names[start:], *names[:start]):
                if name != SLOWEST or number < SLOW_ROUNDS:
                    taken[name].append(seconds(commands[name], around))
    return taken


COLD = ("gradsmith cold", "ruff cold")


def of_projects(name: str, rounds: int, pause: float) -> None:
    """Cold runs only, project by project; what counts is the sum of the medians."""
    from projects import projects

    sums = dict.fromkeys(COLD, 0.0)
    for project in projects(name):
        folder = str(project.folder)
        taken = measure(folder, rounds, COLD)
        medians = {each: statistics.median(times) for each, times in taken.items()}
        for each in COLD:
            sums[each] += medians[each]
        ours, theirs = (medians[each] for each in COLD)
        print(
            f"  {project.name:<36} {project.files:5} files  {ours:.3f} s  ruff {theirs:.3f} s  {ours / theirs:.2f} x",
            flush=True,
        )
        time.sleep(pause)
    ours, theirs = (sums[each] for each in COLD)
    print(f"{name}: {ours:.2f} s, ruff {theirs:.2f} s in sum: {ours / theirs:.2f} x ({rounds} rounds)")


FUNCTION = """import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x
"""


def of_start(rounds: int) -> None:
    """Start-up of the installed command, on a file that holds nothing and on one with a Function."""
    with tempfile.TemporaryDirectory() as scratch:
        for shown, text in (("nothing", "x = 1\n"), ("a Function", FUNCTION)):
            file = Path(scratch) / "one.py"
            file.write_text(text)
            command = contestants(str(file), Path(scratch))["gradsmith cold"]
            times = [seconds(command, environment()) for _ in range(rounds + 1)][1:]
            print(
                f"start-up, a file with {shown}: {statistics.median(times):.3f} s ({min(times):.3f} to {max(times):.3f})"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--package", default="torch")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--projects")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between projects, for whoever shares the machine"
    )
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="the CPU time of a cold run, not the time on the clock")
    options = parser.parse_args()
    if options.start:
        of_start(options.rounds)
        return
    if options.projects:
        of_projects(options.projects, options.rounds, options.pause)
        return
    found = importlib.util.find_spec(options.package)
    assert found is not None and found.submodule_search_locations, f"{options.package} is not installed"
    folder = found.submodule_search_locations[0]
    if options.cpu:
        of_processors(folder, options.rounds)
        return
    taken = measure(folder, options.rounds)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    base = medians["ruff cold"]
    files = sum(name.endswith(".py") for _, _, names in os.walk(folder) for name in names)
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{options.package}: {files} files, {options.rounds} rounds, Python {platform.python_version()}, {load}")
    for name, median in medians.items():
        low, high = min(taken[name]), max(taken[name])
        print(f"  {name:<15} {median:7.3f} s  ({low:.3f} to {high:.3f})  {median / base:5.2f} x ruff cold")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        content = {"package": options.package, "files": files, "seconds": taken, "medians": medians}
        options.output.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
