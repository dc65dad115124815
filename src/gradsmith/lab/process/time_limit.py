"""How long a subject may compute, and how long it may take at all.

A limit of time that a clock on the wall measures calls a right gradient a hang on a busy machine. So what counts is the time
for which a subject and all it started had a processor. What waits for something that never comes uses none: for that there is a
limit on the wall, ten times as long and a minute.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradsmith.lab.process import tree

TIMES = 10.0
MORE = 60.0
_POLL = 0.1


@dataclass
class TimeLimit:
    """Begins when it is made.

    >>> import os
    >>> TimeLimit(1e9).exceeded([os.getpid()])
    ''
    """

    seconds: float
    started: float = field(default_factory=time.monotonic)
    computed: float = 0.0

    @property
    def wall(self) -> float:
        return TIMES * self.seconds + MORE

    def exceeded(self, pids: Collection[int]) -> str:
        """What these processes did instead of finishing, or nothing."""
        self.computed = max(self.computed, tree.cpu_seconds(pids))  # what ended on its own is no longer told
        if self.computed > self.seconds:
            return f"did not finish within {self.seconds:g} s of CPU time"
        if time.monotonic() - self.started > self.wall:
            return f"did not finish within {self.wall:g} s and computed for {self.computed:.2g} s of them; it waits for something"
        return ""


def waited(process: subprocess.Popen[Any], seconds: float) -> str:
    """Wait for a process: what it and all it started did instead of finishing within the limit, or nothing where it ended."""
    limit = TimeLimit(seconds)
    with _told_of_the_end(process) as wait:
        while not (late := limit.exceeded([process.pid, *tree.below(process.pid)])):
            wait(_POLL)
            if process.poll() is not None:
                return ""
    return late


@contextlib.contextmanager
def _told_of_the_end(process: subprocess.Popen[Any]) -> Iterator[Callable[[float], object]]:
    """How to wait for at most so many seconds for its end.

    `Popen.wait` with a limit asks, and asks again after 50 ms: a third of what planning a recurrent layer takes. Linux tells.
    """
    descriptor = None
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # it has ended, or the kernel is older than 5.3
            descriptor = os.pidfd_open(process.pid)
    if descriptor is None:

        def asked(seconds: float) -> None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)

        yield asked
        return
    try:
        ends = select.poll()
        ends.register(descriptor, select.POLLIN)
        yield lambda seconds: ends.poll(seconds * 1000)
    finally:
        os.close(descriptor)


def finished(
    command: Sequence[str], seconds: float, *, given: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end on what it is given; where it exceeds the limit, TimeoutError, and all that it started is ended.

    >>> finished(["cat"], 60, given="as it was").stdout
    'as it was'
    """
    with (
        tempfile.TemporaryFile("w+") as asked,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        asked.write(given)
        asked.seek(0)
        process = subprocess.Popen(
            command, stdin=asked, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        try:
            late = waited(process, seconds)
        finally:
            if process.poll() is None:
                tree.end([process.pid])
                process.wait()
        if late:
            raise TimeoutError(late)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, out.read(), err.read())
