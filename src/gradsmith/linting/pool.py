"""Shares of work in several processes, where that pays.

They are forked, so that models need not travel; never from a process that has loaded torch (its threads do not survive
a fork) or has threads itself. A fork costs 10 ms here and a share of the torch package saves 300.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from gradsmith.findings import Finding, Skipped
from gradsmith.linting.settle import Found
from gradsmith.source import FileModel

if TYPE_CHECKING:
    from gradsmith.linting.run import Run

S = TypeVar("S")
T = TypeVar("T")
PAYS_FROM = 150  # files to lint
PAYS_FROM_BYTES = 500_000  # or that much in fewer: 0.1 s of one process
MOST = 8


def processors() -> int:
    """How many processes may run at once; 1 where forking would break something."""
    if not hasattr(os, "fork") or "torch" in sys.modules or threading.active_count() != 1:
        return 1
    try:
        return min(len(os.sched_getaffinity(0)), MOST)
    except AttributeError:
        return min(os.cpu_count() or 1, MOST)


def side_by_side(shares: Sequence[Callable[[], T]]) -> list[T]:
    """The results of all shares: the first is done here, the others in processes of their own."""
    children = [_Child(share) for share in shares[1:]]
    try:
        return [shares[0](), *(child.result() for child in children)]
    finally:
        for child in children:
            child.end()


def both(here: Callable[[], S], there: Callable[[], T], count: int) -> tuple[S, T]:
    """The results of two pieces of work, the second in a process of its own where there may be two."""
    if count == 1:
        return here(), there()
    child = _Child(there)
    try:
        return here(), child.result()
    finally:
        child.end()


class _Child(Generic[T]):
    """A forked process that sends back what its share comes to."""

    def __init__(self, share: Callable[[], T]) -> None:
        self.share = share
        self.reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                with os.fdopen(writing, "wb") as stream:
                    pickle.dump(share(), stream, protocol=pickle.HIGHEST_PROTOCOL)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)

    def result(self) -> T:
        with os.fdopen(self.reading, "rb", closefd=False) as stream:
            data = stream.read()
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        # What went wrong there is repeated here, where an error can be told.
        if status:
            return self.share()
        sent: T = pickle.loads(data)
        return sent

    def end(self) -> None:
        os.close(self.reading)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Queue:
    """Numbers from which several processes take the next one, so that none is idle while another has work left.

    They wait in a pipe: whoever reads four bytes has taken a number, and no other process sees it.
    """

    _MOST_BYTES = 16_384  # that much every system's pipe takes without a reader

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers
        self.at_once = -(-4 * len(numbers) // self._MOST_BYTES) or 1
        self.reading, writing = os.pipe()
        for start in range(0, len(numbers), self.at_once):
            os.write(writing, start.to_bytes(4, "little"))
        os.close(writing)

    def __iter__(self) -> Iterator[int]:
        while token := os.read(self.reading, 4):
            start = int.from_bytes(token, "little")
            yield from self.numbers[start : start + self.at_once]

    def close(self) -> None:
        os.close(self.reading)


class Part(Protocol):
    """What one process comes to, and of which numbers."""

    done: list[int]


P = TypeVar("P", bound=Part)


def shared_out(work: Callable[[Iterable[int]], P], numbers: Sequence[int], count: int) -> list[P]:
    """The work in `count` processes that take the numbers from one queue."""
    if count == 1:
        return [work(numbers)]
    queue = Queue(numbers)
    try:
        parts = side_by_side([partial(work, queue)] * count)
    finally:
        queue.close()
    # What a process took and never told of, because it died.
    lost = set(numbers).difference(*(part.done for part in parts))
    return [*parts, work(sorted(lost))] if lost else parts


class _Sent(NamedTuple):
    """A `Found` as it travels: files by their place in a list that both processes have."""

    finding: Finding
    file: int
    stands_in: int
    is_own: bool
    header: range


@dataclass
class _Result:
    done: list[int]
    found: list[_Sent]
    skipped: list[Skipped]
    functions: int
    unparsed: list[int]


def lint_in_processes(run: Run, files: Sequence[FileModel], count: int) -> None:
    """Every rule over every file, in `count` processes."""
    longest_first = sorted(range(len(files)), key=lambda index: -run.sizes[files[index]])
    parts = shared_out(partial(_lint_some, run, files), longest_first, count)
    sent = sorted((s for part in parts for s in part.found), key=lambda s: s.file)
    # In the order in which one process would have found them: rules settle twins by it.
    run.found += [Found(s.finding, files[s.file], files[s.stands_in], s.is_own, s.header) for s in sent]
    for part in parts:
        run.skipped += part.skipped
        run.functions += part.functions
        run.unparsed.update(files[index] for index in part.unparsed)
    run.skipped.sort(key=lambda skipped: skipped.path)


def _lint_some(run: Run, files: Sequence[FileModel], indices: Iterable[int]) -> _Result:
    mine = replace(run, found=[], skipped=[], functions=0, unparsed=set())
    done = []
    for index in indices:
        mine.lint_file(files[index])
        done.append(index)
    place = {file: index for index, file in enumerate(files)}
    sent = [_Sent(f.finding, place[f.file], place[f.stands_in], f.is_own, f.header) for f in mine.found]
    return _Result(done, sent, mine.skipped, mine.functions, [place[file] for file in mine.unparsed])
