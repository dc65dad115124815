"""Processes that a recorded script starts (DDP by `mp.spawn`, multiprocessing): each has a tape and a report of its own.

Under torchrun every rank runs `gradsmith record` itself; only the title differs.
"""

from __future__ import annotations

import contextlib
import multiprocessing.process as process
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


def rank() -> str:
    """`rank 1` under a launcher that says so, else empty."""
    number = os.environ.get("RANK")
    return f"rank {number}" if number is not None and os.environ.get("WORLD_SIZE", "1") != "1" else ""


class Recorded:
    """A process target with a tape around it. Importable, because multiprocessing sends it to a fresh interpreter."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from gradsmith.recording.tape import Tape

        tape = Tape()
        try:
            with tape:
                return self.target(*args, **kwargs)
        finally:
            if tape.functions:
                _report(tape)


@contextlib.contextmanager
def recorded_children() -> Iterator[None]:
    """Processes started in this block are recorded."""
    kept = process.BaseProcess.__init__

    def init(self: Any, group: Any = None, target: Any = None, *args: Any, **kwargs: Any) -> None:
        kept(self, group, Recorded(target) if target is not None else None, *args, **kwargs)

    process.BaseProcess.__init__ = init  # type: ignore[method-assign]
    try:
        yield
    finally:
        process.BaseProcess.__init__ = kept  # type: ignore[method-assign]


def _report(tape: Any) -> None:
    name = process.current_process().name
    text = str(tape.check())
    sys.stderr.write(f"\ngradsmith record, {rank() or name}:\n{text}")
    sys.stderr.flush()
