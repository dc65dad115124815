"""Real-time priority for the rounds of a benchmark alone: beside other programs, what is timed is not interrupted.

Preparation (imports, most of compiling) runs as before, so that the others go on between two rows. Needs the right to set
priorities (root, or RLIMIT_RTPRIO); threads that start during the rounds inherit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def real_time(priority: int, processes: Iterable[int]) -> Iterator[None]:
    """All threads of this process and of `processes` run first, by SCHED_FIFO; with 0 nothing is changed."""
    everyone = [os.getpid(), *processes] if priority else []
    before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    _set(everyone, os.SCHED_FIFO, priority)
    try:
        yield
    finally:
        _set(everyone, *before)


def _set(processes: list[int], policy: int, priority: int) -> None:
    for process in processes:
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(ProcessLookupError):  # a thread that has just ended
                os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))
