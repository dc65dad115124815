"""What is left out of the garbage collector's work: in a worker, whatever was loaded before it."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_for_good = [False]


def freeze() -> None:
    """All that exists now stays: a collection need not look at it, nor write into the memory that forks share."""
    gc.freeze()
    _for_good[0] = True


@contextlib.contextmanager
def frozen() -> Iterator[None]:
    """No collection by itself, and none of what existed before, while the block runs.

    >>> with frozen():
    ...     gc.isenabled()
    False
    """
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        if not _for_good[0]:
            gc.unfreeze()
        if collecting:
            gc.enable()
