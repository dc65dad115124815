"""Run many subjects, each in a process of its own, with as many zygotes as there are jobs.

The report does not depend on their number: what came out is put together in the order of the targets.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradsmith.checking.subjects import Wanted
from gradsmith.findings import Report
from gradsmith.folding import together
from gradsmith.torch_here import need_torch

if TYPE_CHECKING:
    from gradsmith.lab.process.isolation import Zygote


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


def started(how: Running) -> Zygote:
    """A zygote that is importing torch while the caller does something else. Hand it to `run`."""
    from gradsmith.checking.isolated import WORKER
    from gradsmith.lab.process.isolation import Limits, Zygote

    need_torch("gradsmith check")
    return Zygote(Limits(how.seconds, how.bytes), WORKER, warm=how.options.get("level", "standard") != "quick")


def run(
    work: Sequence[Wanted],
    how: Running,
    advance: Callable[[Report], None] | None = None,
    first: Zygote | None = None,
) -> Report:
    """Check every subject of every file; `advance` gets the report of each one that is done.

    `first` is a zygote that was started before; with several jobs the others start their own.
    """
    waiting: queue.SimpleQueue[tuple[int, Wanted]] = queue.SimpleQueue()
    for item in enumerate(work):
        waiting.put(item)
    done: dict[int, list[Report]] = {}
    troubles: list[BaseException] = []

    def serve(zygote: Zygote | None) -> None:
        try:
            _serve(waiting, how, done, advance, zygote)
        except BaseException as error:  # raised again in the caller's thread
            troubles.append(error)

    count = max(1, min(how.jobs, len(work)))
    if count == 1:
        _serve(waiting, how, done, advance, first)
    else:
        threads = [threading.Thread(target=serve, args=(first if i == 0 else None,), daemon=True) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if troubles:
        raise troubles[0]
    return together(*(report for number in sorted(done) for report in done[number]))


def _serve(
    waiting: queue.SimpleQueue[tuple[int, Wanted]],
    how: Running,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
    running: Zygote | None,
) -> None:
    from gradsmith.checking.isolated import Job, reports

    with contextlib.nullcontext(running) if running is not None else started(how) as zygote:
        while True:
            try:
                number, item = waiting.get_nowait()
            except queue.Empty:
                return
            subjects = list(item.subjects)
            task = Job(item.path, item.module, subjects, list(how.stubs), how.inputs, None, how.device, item.whole)
            for report in reports(zygote, task, how.options):
                done.setdefault(number, []).append(report)
                if advance is not None:
                    advance(report)
