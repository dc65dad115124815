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
from gradsmith.checking.remembered import Memory
from gradsmith.checking.subjects import Named, Wanted
from gradsmith.findings import GradsmithError, Report
from gradsmith.folding import together

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
    hears: Callable[[str], None] | None = None  # is told which subject is tried for what


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


def recalled(work: Sequence[Wanted], memory: Memory) -> list[Recalled]:
    """The work, with what is remembered of it."""
    return [Recalled(item, *memory.recall(item)) for item in work]


def started(how: Running) -> Zygote:
    """A zygote that is importing torch while the caller does something else. Hand it to `run`."""
    from gradsmith.checking.isolated import WORKER
    from gradsmith.lab.process.isolation import Limits, Zygote

    if importlib.util.find_spec("torch") is None:
        raise GradsmithError(MISSING_TORCH.format(what="gradsmith check"))
    return Zygote(Limits(how.seconds, how.bytes), WORKER, warm=how.options.get("level", "standard") != "quick")


def run(
    work: Sequence[Recalled],
    how: Running,
    memory: Memory,
    advance: Callable[[Report], None] | None = None,
    first: Zygote | None = None,
) -> Report:
    """Check every subject of every file that is not known; `advance` gets the report of each one that is done.

    `first` is a zygote that was started before; with several jobs the others start their own.
    """
    waiting: queue.SimpleQueue[tuple[int, Recalled]] = queue.SimpleQueue()
    done: dict[int, list[Report]] = {}
    for number, one in enumerate(work):
        if one.complete:
            done[number] = [one.known[name] for name, _ in one.names]
            for report in done[number] if advance is not None else ():
                advance(report)  # type: ignore[misc]
        else:
            waiting.put((number, one))
    troubles: list[BaseException] = []

    def serve(zygote: Zygote | None) -> None:
        try:
            _serve(waiting, how, memory, done, advance, zygote)
        except BaseException as error:  # raised again in the caller's thread
            troubles.append(error)

    count = max(1, min(how.jobs, waiting.qsize()))
    if waiting.empty():
        pass
    elif count == 1:
        _serve(waiting, how, memory, done, advance, first)
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
    waiting: queue.SimpleQueue[tuple[int, Recalled]],
    how: Running,
    memory: Memory,
    done: dict[int, list[Report]],
    advance: Callable[[Report], None] | None,
    running: Zygote | None,
) -> None:
    with contextlib.nullcontext(running) if running is not None else started(how) as zygote:
        zygote.hears = how.hears
        while True:
            try:
                number, one = waiting.get_nowait()
            except queue.Empty:
                return
            done[number] = _checked(zygote, one, how, memory, advance)


def _checked(
    zygote: Zygote, one: Recalled, how: Running, memory: Memory, advance: Callable[[Report], None] | None
) -> list[Report]:
    """The reports on all subjects of a file: those that are known, and those of a run."""
    from gradsmith.checking.isolated import Job, reports

    item = one.item
    whole = item.whole and not one.known  # what it declares inputs for is remembered with its names
    task = Job(item.path, item.module, one.new, list(how.stubs), how.inputs, None, how.device, whole)
    names, found, new = list(one.names), dict(one.known), {}
    for done in reports(zygote, task, how.options):
        found[done.name] = done.report
        new[done.name] = (done.report, done.seen)
        if (done.name, done.line) not in names:
            names.append((done.name, done.line))
        if advance is not None:
            advance(done.report)
    memory.keep(item, names, new)
    return [found[name] for name, _ in names if name in found]
