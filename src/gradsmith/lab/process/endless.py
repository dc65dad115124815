"""Code that somebody's program never ran before, held to a number of lines: a changed condition may never come true."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any


class Endless(Exception):
    """More lines ran than were allowed."""


@contextlib.contextmanager
def ended_after(lines: int, files: Collection[str]) -> Iterator[None]:
    """Raises `Endless` inside code of these files once so many of its lines have run. Another tracer comes back after it.

    Python reports a line each time it is come to; a loop of a single instruction (`while True: pass`) is not reported.

    >>> with ended_after(100, ["<endless>"]):
    ...     exec(compile("n = 0\\nwhile True: n += 1", "<endless>", "exec"))
    Traceback (most recent call last):
        ...
    gradsmith.lab.process.endless.Endless: more than 100 lines
    """
    left = lines

    def traced(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise Endless(f"more than {lines} lines")
        return traced

    theirs = sys.gettrace()
    sys.settrace(traced)
    try:
        yield
    finally:
        sys.settrace(theirs)
