"""Counts the calls of a forward and of a backward, by probe and by the functions of gradsmith that led there.

A file of its own: what stands beside a subject is taken for its code, and the branches of a counter would be explored.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import gradsmith as gs

HERE = Path(gs.__file__).parent


class Forwards:
    """Counts the calls of a forward and of a backward, by probe and by the functions that led there."""

    def __init__(self) -> None:
        self.probes: Counter[str] = Counter()
        self.callers: Counter[tuple[str, ...]] = Counter()
        self.backwards = 0

    @property
    def total(self) -> int:
        return sum(self.probes.values())

    def note(self) -> None:
        frames = list(_own_frames(sys._getframe(1)))
        rules = [Path(f.f_code.co_filename).stem for f in frames if "rules" in Path(f.f_code.co_filename).parts]
        self.probes[rules[-1].replace("_", "-") if rules else "(no probe)"] += 1
        self.callers[tuple(f"{Path(f.f_code.co_filename).stem}.{f.f_code.co_name}" for f in frames[:7])] += 1


def _own_frames(frame: FrameType | None) -> Any:
    """The frames of gradsmith itself, innermost first."""
    while frame is not None:
        if HERE in Path(frame.f_code.co_filename).parents:
            yield frame
        frame = frame.f_back
