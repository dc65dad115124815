"""Check many subjects in processes of their own: a crash or a hang costs that subject. Used by several benchmarks."""

from __future__ import annotations

import os
import queue
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from gradsmith.checking.isolated import WORKER, Job, reports
from gradsmith.findings import Report
from gradsmith.lab.process.isolation import Limits, Zygote


def checked_apart(jobs: Sequence[Job], level: str, workers: int = 2, seconds: float = 120.0) -> list[list[Report]]:
    """The reports of every job, in the order of the jobs, as `gs.check(..., isolate=True)` makes them.

    The cache begins empty: what an earlier run has learned must not make this one look better.
    """
    with tempfile.TemporaryDirectory(prefix="gradsmith-cache-") as cache:
        os.environ["GRADSMITH_CACHE_DIR"] = cache
        return _reports(jobs, level, workers, seconds)


def _reports(jobs: Sequence[Job], level: str, workers: int, seconds: float) -> list[list[Report]]:
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)
    found: list[list[Report]] = [[] for _ in jobs]

    def work() -> None:
        with Zygote(Limits(seconds=seconds), WORKER, warm=level != "quick") as zygote:
            while not waiting.empty():
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                found[number] = [done.report for done in reports(zygote, jobs[number], {"level": level})]
                draw(len(jobs) - waiting.qsize(), len(jobs), jobs[number].where)

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work) for _ in range(workers)]:
            future.result()
    return found


def draw(number: int, total: int, what: str) -> None:
    """A bar on stderr where that is a terminal, else a line for every tenth of the work."""
    full = 30 * number // max(1, total)
    line = f"[{'#' * full}{'.' * (30 - full)}] {number}/{total} {what[-60:]}"
    if sys.stderr.isatty():
        print(f"\r{line:<110}", end="", file=sys.stderr, flush=True)
    elif number % max(1, total // 10) == 0:
        print(line, file=sys.stderr, flush=True)
