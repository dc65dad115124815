"""Long benchmarks in pieces, on a machine that is shared: what was measured of this commit is kept, and not measured again.

    BENCH_KEEP=/tmp/kept BENCH_SECONDS=400 python benchmarks/reach.py benchmarks/reach/set1     again and again, until it ends
    BENCH_KEEP=/tmp/kept python benchmarks/evidence.py run reach1                               then prints the whole

Without BENCH_KEEP nothing is kept. A tree with changes that are not committed is refused: one table is of one tree.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
_BEGUN = time.monotonic()


class NotFinished(Exception):
    """The time of this piece is over."""


@functools.cache
def _folder() -> Path | None:
    wanted = os.environ.get("BENCH_KEEP")
    if not wanted:
        return None

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    if git("status", "--porcelain", "--", "src", "benchmarks/*.py", "examples"):
        raise SystemExit("BENCH_KEEP: this tree has changes that are not committed")
    folder = Path(wanted) / git("rev-parse", "--short", "HEAD:src")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(name: str, compute: Callable[[], T]) -> T:
    """What was kept under this name, else what is computed now."""
    folder = _folder()
    if folder is None:
        return compute()
    file = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.pickle"
    if file.exists():
        found: T = pickle.loads(file.read_bytes())
        return found
    if time.monotonic() - _BEGUN > float(os.environ.get("BENCH_SECONDS", "inf")):
        raise NotFinished(name)
    found = compute()
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(found))
    part.replace(file)
    return found
