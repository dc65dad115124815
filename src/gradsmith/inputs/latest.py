"""The tape that stopped last in this process: `gs.check(fn)` finds its inputs there. Imports nothing, and so costs a test run nothing."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.recording.tape import Tape

_latest: weakref.ref[Tape] | None = None


def latest() -> Tape | None:
    """That tape, while somebody holds it."""
    return _latest() if _latest is not None else None


def stopped(tape: Tape) -> None:
    """From now on this tape is the latest."""
    global _latest
    _latest = weakref.ref(tape)
