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

from gradsmith.checking import verdict
from gradsmith.checking.remembered import RunMemory
from gradsmith.checking.subjects import Named, Wanted
from gradsmith.findings import Report
from gradsmith.folding import together
from gradsmith.lab.process.stopping import Stopped, undisturbed
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
    on_stage: Callable[[str], None] | None = None  # is told which subject is tried for what


@dataclass
class Recalled:
    """A file with its subjects in their order, and the reports on those that are known already."""

    item: Wanted
    names: list[Named]
    known: dict[str, Report]

    @property
    def new(self) -> list[Named]:
        return [(name, line) for name, line in self.names if name not in self.known]

    @property
    def complete(self) -> bool:
        """Nothing has to be run. Whether a file declares inputs for more than its Functions shows when it is imported."""
        return bool(self.known) and not self.new


Queue = queue.SimpleQueue[tuple[int, Recalled]]


def recalled(work: Sequence[Wanted], memory: RunMemory) -> list[Recalled]:
    """The work, with what is remembered of it."""
    return [Recalled(item, *memory.recall(item)) for item in work]


def started(how: Running) -> Zygote:
    """A zygote that is importing torch while the caller does something else. Hand it to `run`."""
    from gradsmith.checking.isolated import WORKER
    from gradsmith.lab.process.isolation import Limits
    from gradsmith.lab.process.spawning import new_zygote

    need_torch("gradsmith check")
    return new_zygote(Limits(how.seconds, how.bytes), WORKER, warm=how.options.get("level", "standard") != "quick")


def run(
    work: Sequence[Recalled],
    how: Running,
    memory: RunMemory,
    advance: Callable[[Report], None] | None = None,
    first: Zygote | None = None,
) -> Report:
    """Check every subject of every file that is not known; `advance` gets the report of each one that is done.

    `first` is a zygote that was started before; with several jobs the others start their own.
    """
    waiting: Queue = queue.SimpleQueue()
    done: dict[int, list[Report]] = {}
    for number, one in enumerate(work):
        if one.complete:
            done[number] = [one.known[name] for name, _ in one.names]
            for report in done[number] if advance is not None else ():
                advance(report)  # type: ignore[misc]
        else:
            waiting.put((number, one))
    try:
        _run(waiting, how, memory, done, advance, first, min(how.jobs, waiting.qsize()))
    except Stopped as stopped:
        found = [report for number in sorted(done) for report in list(done[number])]
        stopped.report = together(*found, _unreached([one.item for one in work], found, stopped.words))
        raise
    return together(*(report for number in sorted(done) for report in done[number]))


def _run(
    waiting: Queue,
    how: Running,
    memory: RunMemory,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
    first: Zygote | None,
    count: int,
) -> None:
    if waiting.empty():
        return
    if count <= 1:
        _serve(waiting, how, memory, done, advance, first)
        return
    troubles: list[BaseException] = []
    running: list[Zygote] = []

    def serve(zygote: Zygote | None) -> None:
        try:
            _serve(waiting, how, memory, done, advance, zygote, running)
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
    memory: RunMemory,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
    given: Zygote | None,
    running: list[Zygote] | None = None,
) -> None:
    with contextlib.nullcontext(given) if given is not None else started(how) as zygote:
        zygote.on_stage = how.on_stage
        if running is not None:
            running.append(zygote)
        while True:
            try:
                number, one = waiting.get_nowait()
            except queue.Empty:
                return
            done[number] = list(one.known.values())  # what a signal leaves, if it comes before the file is done
            done[number] = _checked(zygote, one, how, memory, advance, done[number])


def _checked(
    zygote: Zygote,
    one: Recalled,
    how: Running,
    memory: RunMemory,
    advance: Callable[[Report], None] | None,
    so_far: list[Report],
) -> list[Report]:
    """The reports on all subjects of a file: those that are known, and those of a run, which `so_far` gets as they come."""
    from gradsmith.checking.isolated import Job, reports

    item = one.item
    whole = item.whole and not one.known  # what it declares inputs for is remembered with its names
    task = Job(item.path, item.module, one.new, list(how.stubs), how.inputs, None, how.device, whole)
    names, found, new = list(one.names), dict(one.known), {}
    for done in reports(zygote, task, how.options):
        found[done.name] = done.report
        so_far.append(done.report)
        if done.name:  # what is wrong with a file as a whole is found again
            new[done.name] = (done.report, done.seen)
        if (done.name, done.line) not in names:
            names.append((done.name, done.line))
        if advance is not None:
            advance(done.report)
    memory.keep(item, names, new)
    return [found[name] for name, _ in names if name in found]
