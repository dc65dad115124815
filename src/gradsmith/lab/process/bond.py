"""What ties processes together on Linux: one that dies with its parent, and one that takes over whatever is orphaned below it.

Elsewhere both do nothing, and a process group is all there is.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with(parent: int, by: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """When `parent`, which started this process, is gone, the system sends this process the signal `by`."""
    _prctl(_PR_SET_PDEATHSIG, int(by))
    if os.getppid() != parent and sys.platform == "linux":  # it went before it was asked for
        os.kill(os.getpid(), by)


def adopt_orphans() -> None:
    """Whatever is started below this process, and loses its parent, becomes a child of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)
