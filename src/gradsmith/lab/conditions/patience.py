"""A limit of time within a process: compilers may take forever over what others run in a moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfPatience(BaseException):
    """Raised in the middle of whatever runs. No `Exception`, because compilers catch those and go on another way."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise OutOfPatience when the block takes longer; without effect where there is no alarm (threads, Windows).

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

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
