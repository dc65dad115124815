"""Whose line is it, and which Python loops is it in? Answers from stack frames and source text."""

from __future__ import annotations

import itertools
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import torch

from gradsmith.about import FOLDER
from gradsmith.source import spans
from gradsmith.source.loaded import line_of
from gradsmith.source.spans import LoopSpan

_OURS = FOLDER
_TORCH = str(Path(torch.__file__).parent)
_MODULES = str(Path(torch.nn.modules.__file__).parent)
_LIBRARY = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_BOUNDARY = str(Path(__file__).with_name("bench.py"))


@dataclass(frozen=True)
class Site:
    """A place in the user's code that is on the stack while an operation runs."""

    path: str
    line: int
    function: str
    loops: tuple[LoopSpan, ...] = ()

    @property
    def text(self) -> str:
        return line_of(self.path, self.line)


def stack(home: str | None, above: int = 2) -> list[FrameType]:
    """The user's frames, innermost first, from the running operation up to where gradsmith called the subject."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(above)
    while frame is not None and frame.f_code.co_filename != _BOUNDARY:
        if is_user_file(frame.f_code.co_filename, home):
            frames.append(frame)
        frame = frame.f_back
    return frames


def built_in(home: str | None, above: int = 2) -> str:
    """The class of torch's own module that runs the operation for the user's line (`LSTMCell`), or nothing."""
    frame: FrameType | None = sys._getframe(above)
    while frame is not None and not is_user_file(frame.f_code.co_filename, home):
        if frame.f_code.co_filename.startswith(_MODULES) and frame.f_code.co_name == "forward":
            return type(frame.f_locals.get("self")).__name__
        if frame.f_code.co_filename == _BOUNDARY:
            return ""
        frame = frame.f_back
    return ""


@cache
def is_user_file(path: str, home: str | None) -> bool:
    """Code of the subject's own project: not torch, not gradsmith, not the library (unless the subject lives there)."""
    if path == home:
        return True
    if path.startswith((_TORCH, _OURS)) or (path.startswith("<") and not path.startswith("<ipython")):
        return False
    return not path.startswith(_LIBRARY)


@cache
def site(code: CodeType, instruction: int) -> Site:
    """The place of one instruction, with the loops around it in its own function."""
    positions = next(itertools.islice(_positions(code), instruction // 2, None), None)
    line = (positions[0] if positions else None) or code.co_firstlineno
    column = positions[1] if positions else None
    found = spans.around(code.co_filename, line, column)
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return Site(code.co_filename, line, name, found)


@cache
def headers(path: str) -> frozenset[int]:
    """Lines on which an iteration of some loop begins; asked for at every call."""
    return spans.headers(path)


def _positions(code: CodeType) -> itertools.chain[tuple[int | None, int | None]]:
    if hasattr(code, "co_positions"):  # Python 3.11
        return itertools.chain((p[0], p[2]) for p in code.co_positions())
    # 3.10 knows lines only: one entry per two bytes of bytecode, as co_positions gives them.
    spread = ([(line, None)] * ((end - start) // 2) for start, end, line in code.co_lines())
    return itertools.chain.from_iterable(spread)
