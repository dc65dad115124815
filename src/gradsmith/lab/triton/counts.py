"""How often each shim stood in for what only a GPU has: a report lists them, so that nobody mistakes it for a GPU."""

from __future__ import annotations

from collections import Counter

_used: Counter[str] = Counter()


def used(shim: str) -> None:
    """One more use of a shim."""
    _used[shim] += 1


def counted() -> dict[str, int]:
    """The shims that were used in this process, by name."""
    return dict(sorted(_used.items()))
