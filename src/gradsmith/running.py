"""Run many subjects, each in a process of its own, with as many zygotes as there are jobs.

The report does not depend on their number: what came out is put together in the order of the targets.
"""

from __future__ import annotations

import importlib.util
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradsmith import MISSING_TORCH
from gradsmith.findings import GradsmithError, Report
from gradsmith.subjects import Wanted


@dataclass(frozen=True)
class Running:
    """How to run: options of the check, limits of one subject, and how many at a time."""

    options: dict[str, Any] = field(default_factory=dict)
    seconds: float = 120.0
    bytes: int = 8 << 30
    stubs: Sequence[str] = ()
    inputs: str | None = None
    device: str | None = None
    jobs: int = 1


def run(work: Sequence[Wanted], how: Running, advance: Callable[[Report], None] | None = None) -> Report:
    """Check every subject of every file; `advance` gets the report of each one that is done."""
    if importlib.util.find_spec("torch") is None:
        raise GradsmithError(MISSING_TORCH.format(what="gradsmith check"))
    waiting: queue.SimpleQueue[tuple[int, Wanted]] = queue.SimpleQueue()
    for item in enumerate(work):
        waiting.put(item)
    done: dict[int, list[Report]] = {}
    troubles: list[BaseException] = []

    def serve() -> None:
        try:
            _serve(waiting, how, done, advance)
        except BaseException as error:  # raised again in the caller's thread
            troubles.append(error)

    count = max(1, min(how.jobs, len(work)))
    if count == 1:
        _serve(waiting, how, done, advance)
    else:
        threads = [threading.Thread(target=serve, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if troubles:
        raise troubles[0]
    total = Report()
    for number in sorted(done):
        for report in done[number]:
            total = total.extended(report)
    return total


def _serve(
    waiting: queue.SimpleQueue[tuple[int, Wanted]],
    how: Running,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
) -> None:
    from gradsmith.lab.isolation import Job, Limits, Zygote

    warm = how.options.get("level", "standard") != "quick"
    with Zygote(Limits(how.seconds, how.bytes), warm=warm) as zygote:
        while True:
            try:
                number, item = waiting.get_nowait()
            except queue.Empty:
                return
            subjects = list(item.subjects)
            task = Job(item.path, item.module, subjects, list(how.stubs), how.inputs, None, how.device, item.whole)
            for report in zygote.run(task, how.options):
                done.setdefault(number, []).append(report)
                if advance is not None:
                    advance(report)
