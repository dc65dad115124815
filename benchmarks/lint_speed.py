"""How long lint takes on the installed torch package, beside ruff and bare parsing, interleaved in one run.

    python benchmarks/lint_speed.py [--rounds 15] [--package torch] [--output benchmarks/results/lint_speed.json]

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


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def measure(folder: str, rounds: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "GRADSMITH_CACHE_DIR": f"{scratch}/gradsmith"}
        commands = contestants(folder, Path(scratch))
        for command in commands.values():
            seconds(command, environment)
        taken: dict[str, list[float]] = {name: [] for name in commands}
        names = list(commands)
        for number in range(rounds):
            start = number % len(names)
            for name in (*names[start:], *names[:start]):
                if name != SLOWEST or number < SLOW_ROUNDS:
                    taken[name].append(seconds(commands[name], environment))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--package", default="torch")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = importlib.util.find_spec(options.package)
    assert found is not None and found.submodule_search_locations, f"{options.package} is not installed"
    folder = found.submodule_search_locations[0]
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
