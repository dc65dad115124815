"""Run many subjects, each in a process of its own, with as many zygotes as there are jobs.

The report does not depend on their number: what came out is put together in the order of the targets.
"""

from __future__ import annotations

import contextlib
import importlib.util
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradsmith.about import MISSING_TORCH
from gradsmith.checking import verdict
from gradsmith.checking.subjects import Wanted
from gradsmith.findings import GradsmithError, Report
from gradsmith.folding import together
from gradsmith.lab.process.stopping import Stopped, undisturbed

if TYPE_CHECKING:
    from gradsmith.lab.process.isolation import Zygote

Queue = queue.SimpleQueue[tuple[int, Wanted]]


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

    if importlib.util.find_spec("torch") is None:
        raise GradsmithError(MISSING_TORCH.format(what="gradsmith check"))
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
    try:
        _run(waiting, how, done, advance, first, max(1, min(how.jobs, len(work))))
    except Stopped as stopped:
        found = [report for number in sorted(done) for report in list(done[number])]
        stopped.report = together(*found, _unreached(work, found, stopped.words))
        raise
    return together(*(report for number in sorted(done) for report in done[number]))


def _run(
    waiting: Queue,
    how: Running,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
    first: Zygote | None,
    count: int,
) -> None:
    if count == 1:
        _serve(waiting, how, done, advance, first)
        return
    troubles: list[BaseException] = []
    running: list[Zygote] = []

    def serve(zygote: Zygote | None) -> None:
        try:
            _serve(waiting, how, done, advance, zygote, running)
        except BaseException as error:  # raised again in the caller's thread
            troubles.append(error)

    threads = [threading.Thread(target=serve, args=(first if i == 0 else None,), daemon=True) for i in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        with undisturbed():
            while not waiting.empty():
                with contextlib.suppress(queue.Empty):
                    waiting.get_nowait()
            for zygote in [*running, *([first] if first is not None else [])]:
                zygote.interrupt()
            for thread in threads:
                thread.join()
        raise
    if troubles:
        raise troubles[0]


def _unreached(work: Sequence[Wanted], found: Sequence[Report], words: str) -> Report:
    """A verdict for each subject that was still to be checked."""
    known = {(subject.path, subject.name) for report in found for subject in report.subjects}
    left = [
        verdict.unverified(name, f"not checked: {words}", item.path, line)
        for item in work
        for name, line in item.subjects
        if (item.path, name) not in known
    ]
    return Report(subjects=left, functions=len(left))


def _serve(
    waiting: Queue,
    how: Running,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
    given: Zygote | None,
    running: list[Zygote] | None = None,
) -> None:
    from gradsmith.checking.isolated import Job, reports

    with contextlib.nullcontext(given) if given is not None else started(how) as zygote:
        if running is not None:
            running.append(zygote)
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
