"""How long a user waits for the first verdict from a cold start, beside the import of torch that is part of it.

    python benchmarks/first_verdict.py [--rounds 5]

Each round starts a fresh `gradsmith check` of one right Function (Linear of examples/first_gradient.py), one of the whole file with
three, and a fresh interpreter that only imports torch. Interleaved, so that whatever else the machine does hits all of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "first_gradient.py"
GOAL = 4.0


def verdicts() -> list[float]:
    """Seconds from the start of the command to its end: for one subject, and for all three of the file."""
    return [_seconds(f"{EXAMPLE}::Linear"), _seconds(str(EXAMPLE))]


def _seconds(target: str) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "gradsmith", "check", target, "--exit-zero", "--no-cache"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def import_of_torch() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    told, imports = [], []
    for _ in range(rounds):
        told.append(verdicts())
        imports.append(import_of_torch())
    first = statistics.median(times[0] for times in told)
    print(f"{rounds} rounds, load {os.getloadavg()[0]:.1f}")
    for name, times in zip(("one Function", "three, two of them wrong"), zip(*told)):
        print(f"  {name}: {statistics.median(times):.2f} s  ({min(times):.2f} to {max(times):.2f})")
    print(f"  import torch alone: {statistics.median(imports):.2f} s  ({min(imports):.2f} to {max(imports):.2f})")
    ratio = statistics.median(times[0] / alone for times, alone in zip(told, imports))
    print(
        f"first verdict: {first:.2f} s ({'within' if first <= GOAL else 'OVER'} {GOAL:g} s), {ratio:.2f}x of the import"
    )
    raise SystemExit(first > GOAL)


if __name__ == "__main__":
    main()
