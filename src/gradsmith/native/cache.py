"""Compiled plans on disk: found by content, written by renaming, and never trusted when torn or not ours.

Each file ends with a digest of its name and of what precedes it. A writer that died half-way, or a disk that filled up,
leaves a file whose digest does not fit; it is compiled again. Two writers at once both succeed: the last rename wins.
Code is loaded from here, so the folder and the file must belong to this user, and nobody else may write to them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from gradsmith import storage
from gradsmith.lab.process import run_folder

_DIGEST = 32


def folder() -> Path:
    """The user's cache folder, private to the user; a temporary one, which goes with the process, where that cannot be had."""
    return storage.cache_folder("recurrent") or _temporary(os.getpid())


@functools.cache
def _temporary(pid: int) -> Path:
    return run_folder.new_part()


def fetch(key: str, build: Callable[[Path], None]) -> Path:
    """The file for `key`, built by `build(path)` unless a whole one is there already."""
    name = f"{key}.so"
    target = folder() / name
    if is_whole(target):
        return target
    try:
        return _built(target, build)
    except OSError:  # the disk is full, or something that cannot be replaced stands under the name
        return _built(_temporary(os.getpid()) / name, build)


def _built(target: Path, build: Callable[[Path], None]) -> Path:
    handle, name = tempfile.mkstemp(suffix=".so", dir=target.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        build(unfinished)
        unfinished.chmod(0o700)
        data = unfinished.read_bytes()
        with unfinished.open("ab") as out:
            out.write(_digest(target, data))
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def is_whole(path: Path) -> bool:
    return _content(path) is not None


def read(name: str) -> bytes | None:
    """The content of a file that `write` wrote, or None if there is none or it is torn."""
    return storage.read_whole(folder() / name)


def write(name: str, data: bytes) -> None:
    """Keep `data`; a full disk or a folder that cannot be written only means that it is made again next time."""
    storage.write_whole(folder() / name, data)


def _content(path: Path) -> bytes | None:
    data = storage.read_own(path)
    whole = data is not None and len(data) > _DIGEST and _digest(path, data[:-_DIGEST]) == data[-_DIGEST:]
    return data[:-_DIGEST] if data is not None and whole else None


def _digest(path: Path, data: bytes) -> bytes:
    return hashlib.sha256(os.fsencode(path.name) + b"\0" + data).digest()
