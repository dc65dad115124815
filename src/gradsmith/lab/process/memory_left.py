"""How much memory a check may still take here: what the machine has, what this process may use, what its subject was given."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradsmith.lab.process import tree

_GROUPS = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60  # version 1 says the largest number there is
_limit: list[int] = []  # bytes that the subject in this process, a worker, was given


@dataclass(frozen=True)
class Left:
    """Bytes, and whose limit it is: `words` continue "and ..."; `remedy` says how there could be more."""

    bytes: int
    words: str
    remedy: str = ""


def limited_to(number: int) -> None:
    """Of this process: whoever started it ends it when it uses more."""
    _limit[:] = [number]


def memory_left() -> Left | None:
    """The least of what is left by all limits; None where the system tells nothing."""
    return min(_every_limit(), key=lambda left: left.bytes, default=None)


def _every_limit() -> Iterator[Left]:
    if (free := _available()) is not None:
        yield Left(free, f"{gib(free)} are free")
    if (free := _left_in_group()) is not None:
        yield Left(free, f"the limit of this container leaves {gib(free)}")
    for limit in _limit:
        free = max(0, limit - tree.memory([os.getpid()], 0))
        yield Left(free, f"the limit of {gib(limit)} for one subject leaves {gib(free)}", "raise --memory-limit")


def gib(number: int) -> str:
    return f"{number / 2**30:.2g} GiB"


def _available() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left_in_group() -> int | None:
    """What the control group of this process leaves: version 2 of them, or version 1."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            own = path.lstrip("/")
            if number == "0" and not controllers:
                folder, most, now, cached = _GROUPS / own, "memory.max", "memory.current", "inactive_file"
            elif "memory" in controllers.split(","):
                folder, cached = _GROUPS / "memory" / own, "total_inactive_file"
                most, now = "memory.limit_in_bytes", "memory.usage_in_bytes"
            else:
                continue
            with contextlib.suppress(OSError, ValueError):  # "max": no limit
                limit, used = int((folder / most).read_bytes()), int((folder / now).read_bytes())
                if limit < _NO_LIMIT:
                    return max(0, limit - used + _of(folder / "memory.stat", cached))
    return None


def _of(statistics: Path, name: str) -> int:
    """What is kept of files, and given back when it is needed, counts as used and is not."""
    rows = (line.split() for line in statistics.read_bytes().decode().splitlines())
    return next((int(row[1]) for row in rows if row[0] == name), 0)
