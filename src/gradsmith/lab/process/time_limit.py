"""How long a subject may compute, and how long it may take at all.

A limit of time that a clock on the wall measures calls a right gradient a hang on a busy machine. So what counts is the time
for which a subject and all it started had a processor. What waits for something that never comes uses none: for that there is a
limit on the wall, ten times as long and a minute.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from gradsmith.lab.process import tree

TIMES = 10.0
MORE = 60.0


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
