"""Shares of work in several processes, where that pays.

They are forked, so that models need not travel; never from a process that has loaded torch (its threads do not survive
a fork) or has threads itself. A fork costs 10 ms here and a share of the torch package saves 300.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
MOST = 8


def processors() -> int:
    """How many processes may run at once; 1 where forking would break something."""
    if not hasattr(os, "fork") or "torch" in sys.modules or _thread._count() > 0:
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


class _Child(Generic[T]):
    """A forked process that sends back what its share comes to."""

    def __init__(self, share: Callable[[], T]) -> None:
        self.share = share
        self.reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                import pickle

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
        import pickle  # 1 ms, while the child is at work

        sent: T = pickle.loads(data)
        return sent

    def end(self) -> None:
        os.close(self.reading)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Queue:
    """Numbers from which several processes take the next one, so that none is idle while another has work left.

    They wait in a pipe: whoever reads eight bytes has taken a number, and no other process sees it.
    """

    _MOST_BYTES = 16_384  # that much every system's pipe takes without a reader

    def __init__(self, numbers: Sequence[int] | None = None) -> None:
        self.numbers: Sequence[int] = ()
        self.reading, self.writing = os.pipe()
        if numbers is not None:
            self.fill(numbers)

    def fill(self, numbers: Sequence[int]) -> None:
        """All of them at once; whoever takes them in another process must know the same ones."""
        self.numbers = numbers
        at_once = -(-8 * len(numbers) // self._MOST_BYTES) or 1
        for start in range(0, len(numbers), at_once):
            os.write(self.writing, start.to_bytes(4, "little") + at_once.to_bytes(4, "little"))
        self.only_take()

    def only_take(self) -> None:
        """Another process fills it, or nobody will any more."""
        os.close(self.writing)

    def __iter__(self) -> Iterator[int]:
        while token := os.read(self.reading, 8):
            start, at_once = int.from_bytes(token[:4], "little"), int.from_bytes(token[4:], "little")
            yield from self.numbers[start : start + at_once]

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
    return with_lost(work, numbers, parts)


def with_lost(work: Callable[[Iterable[int]], P], numbers: Sequence[int], parts: list[P]) -> list[P]:
    """With what a process took and never told of, because it died."""
    lost = set(numbers).difference(*(part.done for part in parts))
    return [*parts, work(sorted(lost))] if lost else parts
