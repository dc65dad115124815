"""Where in the user's code we are while forward runs: the frame, its line, and what is done next with a shape."""

from __future__ import annotations

import dis
import sys
import types
from functools import lru_cache


def user_line() -> int | None:
    """The line of the user's code that is running."""
    frame = user_frame()
    return frame.f_lineno if frame is not None else None


def user_frame() -> types.FrameType | None:
    """The frame of the user's code that is running."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if "gradsmith/deriving" not in path and "/torch/" not in path and "site-packages/torch" not in path:
            return frame
        frame = frame.f_back
    return None


def asked_of(frame: types.FrameType | None) -> int | None:
    """-2 where the running instruction is the `.shape` of `x.shape[-2]`; None where no written number follows."""
    return _indices(frame.f_code).get(frame.f_lasti) if frame is not None else None


@lru_cache(maxsize=256)
def _indices(code: types.CodeType) -> dict[int, int]:
    """By the place of an instruction: the number that what it leaves is indexed with."""
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("CACHE", "EXTENDED_ARG")]
    found = {}
    for first, number, subscript in zip(steps, steps[1:], steps[2:]):
        indexing = subscript.opname == "BINARY_SUBSCR" or (subscript.opname, subscript.argrepr) == ("BINARY_OP", "[]")
        if indexing and number.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and type(number.argval) is int:
            found[first.offset] = number.argval
    return found
