"""Compiled plans on disk: found by content, written by renaming, and never trusted when torn.

Each file ends with a digest of what precedes it. A writer that died half-way, or a disk that filled up, leaves a
file whose digest does not fit; it is compiled again. Two writers at once both succeed: the last rename wins.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

_DIGEST = 32


def folder() -> Path:
    """The user's cache folder, private to the user; a temporary one where that cannot be had."""
    chosen = os.environ.get("GRADSMITH_CACHE_DIR")
    if chosen:
        root = Path(chosen)
    else:
        base = os.environ.get("XDG_CACHE_HOME")
        root = (Path(base) if base else Path.home() / ".cache") / "gradsmith"
    path = root / "recurrent"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for made in (root, path):
            os.chmod(made, 0o700)
        # Code is loaded from here: a folder somebody else owns could hold anything.
        if path.stat().st_uid == os.getuid() and os.access(path, os.W_OK):
            return path
    except OSError:
        pass
    return _temporary()


@functools.cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="gradsmith-"))


def fetch(key: str, build: Callable[[Path], None]) -> Path:
    """The file for `key`, built by `build(path)` unless a whole one is there already."""
    target = folder() / f"{key}.so"
    if not is_whole(target):
        handle, name = tempfile.mkstemp(suffix=".so", dir=target.parent)
        os.close(handle)
        unfinished = Path(name)
        try:
            build(unfinished)
            with unfinished.open("ab") as out:
                out.write(hashlib.sha256(unfinished.read_bytes()).digest())
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)
    return target


def is_whole(path: Path) -> bool:
    return _content(path) is not None


def read(name: str) -> bytes | None:
    """The content of a file that `write` wrote, or None if there is none or it is torn."""
    return _content(folder() / name)


def write(name: str, data: bytes) -> None:
    """Keep `data`; a full disk or a folder that cannot be written only means that it is made again next time."""
    unfinished: Path | None = None
    try:
        target = folder() / name
        handle, path = tempfile.mkstemp(dir=target.parent)
        unfinished = Path(path)
        with os.fdopen(handle, "wb") as out:
            out.write(data + hashlib.sha256(data).digest())
        os.replace(unfinished, target)
    except OSError:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)


def _content(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    whole = len(data) > _DIGEST and hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]
    return data[:-_DIGEST] if whole else None
