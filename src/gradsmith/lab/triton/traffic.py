"""How much each kernel was launched and moved, for a profile."""

from __future__ import annotations

import sys
from typing import Any

from gradsmith.findings import plural


def traffic_notes(run: Any) -> list[str]:
    """A line for each kernel that `run()` launches: launches, programs, bytes. Nothing where no kernel is interpreted."""
    shims: Any = sys.modules.get("gradsmith.lab.triton.shims")
    if shims is None or not shims.installed():
        return []
    from gradsmith.lab.triton.events import kernels_logged

    with kernels_logged() as seen:
        run()
    return [
        f"{name}: {_launches(t.launches)}, {plural(t.programs, 'program')}, {_bytes(t.loaded)} loaded, "
        f"{_bytes(t.stored)} stored in one run; times are those of the interpreter, not of a GPU"
        for name, t in seen.traffic.items()
    ]


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"


def _bytes(count: float) -> str:
    """
    >>> _bytes(512), _bytes(3 << 20)
    ('512 B', '3.0 MiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
