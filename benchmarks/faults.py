"""Hostile files, faulty subjects, signals in every phase, broken caches, and much at once: does gradsmith hold?

    python benchmarks/faults.py [files] [subjects] [signals] [caches] [together] [--jobs 2] [--list]

Each case is a real file, process or terminal in a folder of its own. It survives if there is a report or one sentence, no
process and no temporary folder is left, and no result of another file or subject is lost. With GRADSMITH_SOURCE=PATH/src
another checkout is tried. Exits 1 where a case did not survive, or fewer were tried than the goal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import fault_caches
import fault_files
import fault_runs
import fault_signals
import fault_subjects
import fault_together
from fault_runs import Outcome

GOALS = {"files": 420, "subjects": 100, "signals": 36, "caches": 29, "together": 1}
_AT_ONCE = 12  # faulty subjects in one run


def files(jobs: int) -> Iterator[Outcome]:
    if fault_runs.SOURCE:
        sys.path.insert(0, fault_runs.SOURCE)
    for name in fault_files.HOSTILE:
        yield from fault_files.tried(name)


def subjects(jobs: int) -> Iterator[Outcome]:
    cases = fault_subjects.cases()
    parts = [cases[i : i + _AT_ONCE] for i in range(0, len(cases), _AT_ONCE)]
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(fault_subjects.tried, parts):
            yield from found


def signals(jobs: int) -> Iterator[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(fault_signals.tried, fault_signals.cases())


def caches(jobs: int) -> Iterator[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda case: fault_caches.tried(*case), fault_caches.cases())


def together(jobs: int) -> Iterator[Outcome]:
    yield fault_together.tried()


PARTS = {"files": files, "subjects": subjects, "signals": signals, "caches": caches, "together": together}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="name every case, not only those that did not survive")
    given = parser.parse_args()
    failed = False
    rows = []
    for part in given.parts or PARTS:
        found = []
        for outcome in PARTS[part](given.jobs):
            found.append(outcome)
            if given.list or not outcome.survived:
                print(f"  {outcome.words()}", flush=True)
        survived = sum(o.survived for o in found)
        left = [sum(getattr(o, name) for o in found) for name in ("orphans", "folders", "lost")]
        rows.append(f"| {part} | {len(found)} (goal {GOALS[part]}) | {survived} | {left[0]} | {left[1]} | {left[2]} |")
        failed |= survived < len(found) or len(found) < GOALS[part]
    print(
        "| part | tried | survived | orphans | folders | results of others lost |\n| --- | --- | --- | --- | --- | --- |"
    )
    print("\n".join(rows))
    sys.exit(failed)


if __name__ == "__main__":
    main()
