"""A limit of time within a process: compilers may take forever over what others run in a moment."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gradsmith.lab.process.waiting import kept_waiting


class OutOfPatience(BaseException):
    """Raised in the middle of whatever runs. No `Exception`, because compilers catch those and go on another way."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise OutOfPatience when the block takes longer; without effect where there is no alarm (threads, Windows).
    While others have the processor, time stands still.

    >>> try:
    ...     with at_most(0.01):
    ...         while True:
    ...             pass
    ... except OutOfPatience:
    ...     print("enough")
    enough
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    me = os.getpid()
    started = time.monotonic() - kept_waiting(me)

    def stop(number: int, frame: FrameType | None) -> None:
        left = seconds - (time.monotonic() - kept_waiting(me) - started)
        if left <= 0:
            raise OutOfPatience
        signal.setitimer(signal.ITIMER_REAL, left)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
