"""Processes and what they started, as the system tells it: who is below whom, how much memory they take, how to end them all."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

_ROUNDS = 200  # a process that forks while it is being ended is ended in the next round


def children(pid: int) -> list[int]:
    """The processes that this one started, or that came to it when theirs ended; none where the system does not tell."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
        except FileNotFoundError:
            if os.path.isdir(f"/proc/{pid}/task/{thread}"):  # a kernel that was built without it
                return [child for child in _everyone() if parent(child) == pid]
        except (OSError, ValueError):
            continue
    return found


def below(pid: int) -> list[int]:
    """All that stands below a process, without itself."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        waiting = [child for each in waiting for child in children(each)]
        found += waiting
    return found


def parent(pid: int) -> int:
    """Who started a process, or took it over; 0 where it is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def started_at(pid: int) -> int:
    """When a process started, in ticks since the machine did: with the number it tells a process from a later one."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def is_running(pid: int) -> bool:
    """Whether there is such a process and it has not ended; one that only waits to be asked for its status has."""
    fields = _stat(pid)
    if fields is not None:
        return fields[0] not in "ZX"
    if os.path.isdir("/proc/self"):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def memory(pids: Collection[int], limit: int) -> int:
    """Bytes in memory of these processes together, 0 where the system does not tell.

    What several of them share is counted once, but only where counting it for each exceeds the limit: that takes longer.
    """
    simple = sum(map(_resident, pids))
    if simple <= limit or len(pids) == 1:
        return simple
    return sum(_proportional(pid) for pid in pids)


def cpu_seconds(pids: Collection[int]) -> float:
    """Seconds for which these processes, and those that they started and waited for, had a processor; 0 where none tells.

    >>> cpu_seconds([os.getpid()]) >= 0
    True
    """
    known = [fields for fields in map(_stat, pids) if fields]
    return sum(int(ticks) for fields in known for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK") if known else 0.0


def end(pids: Collection[int]) -> None:
    """End these processes, their groups, and all that is below them, however often they fork."""
    for _ in range(_ROUNDS):
        running = [each for pid in pids for each in (pid, *below(pid)) if is_running(each)]
        if not running:
            return
        own = os.getpgrp()
        for pid in running:
            with contextlib.suppress(OSError):
                group = os.getpgid(pid)
                # A whole group at once: what forks meanwhile is in it. Only groups that one of these processes leads.
                if group != own and group in running:
                    os.killpg(group, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def end_below(pid: int, spared: Collection[int] = ()) -> None:
    """End all that is below a process except these and what they started. Where the process is this one, also reap them."""
    for _ in range(_ROUNDS):
        strays = [child for child in children(pid) if child not in spared]
        if pid == os.getpid():
            for child in strays:
                with contextlib.suppress(OSError):
                    os.waitpid(child, os.WNOHANG)
        strays = [child for child in strays if is_running(child)]
        if not strays:
            return
        end(strays)


def _everyone() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _stat(pid: int) -> list[str] | None:
    """The fields after the name, which may hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return _resident(pid)
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
