"""INT, TERM and HUP as an orderly stop: one exception in the main thread, never in the middle of starting or clearing up."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.findings import Report

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows: two


class Stopped(KeyboardInterrupt):
    """The process was asked to stop. `report` is what was found until then, where there is one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.report: Report | None = None

    @property
    def words(self) -> str:
        return f"interrupted by {signal.Signals(self.number).name}"

    @property
    def status(self) -> int:
        """As shells tell it."""
        return 128 + self.number


class _State:
    depth = 0  # how many blocks are at work that must not be left half-way
    pending = 0
    stopped = False


_state = _State()


@contextlib.contextmanager
def orderly() -> Iterator[None]:
    """Within the block the three signals raise `Stopped`, once. What was told to ignore a signal (nohup) still does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.stopped, _state.pending = False, 0
    before = {}
    owner = os.getpid()

    def stop(number: int, frame: object) -> None:
        if os.getpid() != owner:  # forked: its parent stops, and ends it
            os._exit(128 + number)
        if _state.depth:
            _state.pending = _state.pending or number
        elif not _state.stopped:
            _state.stopped = True
            raise Stopped(number)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A block that is not left half-way: a signal that comes meanwhile counts at its end. In other threads none comes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1
    if not _state.depth and _state.pending and not _state.stopped:
        _state.stopped = True
        raise Stopped(_state.pending)


def leave_at_once() -> None:
    """Everything is cleared up: from now on a second signal ends the process as it stands."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os._exit(128 + number))
