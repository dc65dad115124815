"""How long a process wanted to run and could not. A limit of time that counts this calls a right gradient a hang on a
busy machine; what sleeps, or computes without end, uses its time up all the same."""

from __future__ import annotations

from pathlib import Path


def kept_waiting(pid: int) -> float:
    """Seconds for which others had the processor, 0 where the system does not tell.

    >>> import os
    >>> kept_waiting(os.getpid()) >= 0
    True
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
