"""The temporary files of a run: one folder per process, gone when it ends, whatever ends it.

The folder's name says whose it is: number and start of the process, and the machine. If that process was killed before it
could clear up, the next run sees that its owner is gone and removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import platform
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from gradsmith.lab.process.stopping import undisturbed
from gradsmith.lab.process.tree import is_running, started_at

_NAME = re.compile(r"gradsmith-(\d+)-(\d+)-([0-9a-f]{8})-")


class _Owned:
    """The run folder of this process, and how many parts of it are in use."""

    lock = threading.RLock()
    path: Path | None = None
    pid = 0
    parts = 0


@contextlib.contextmanager
def part() -> Iterator[Path]:
    """A new folder, private to the user and to this block; it goes with the block, and with the process at the latest."""
    made: Path | None = None
    try:
        with undisturbed():
            made = new_part()
        yield made
    finally:
        with undisturbed():
            if made is not None:
                drop(made)


def new_part() -> Path:
    """A folder that stays until it is dropped, or the process ends."""
    with _Owned.lock:
        if _Owned.path is None or _Owned.pid != os.getpid() or not _Owned.path.is_dir():
            _Owned.path, _Owned.pid, _Owned.parts = _made(), os.getpid(), 0
        made = Path(tempfile.mkdtemp(prefix="", dir=_Owned.path))
        _Owned.parts += 1
        return made


def drop(made: Path) -> None:
    """Remove a part, and the run folder with the last one."""
    with _Owned.lock:
        _removed(made)
        if _Owned.pid == os.getpid() and _Owned.path is not None and made.parent == _Owned.path:
            _Owned.parts -= 1
            if _Owned.parts <= 0:
                clear()


def in_use() -> bool:
    """Whether this process has a part that was not dropped."""
    with _Owned.lock:
        return _Owned.path is not None and _Owned.pid == os.getpid() and _Owned.parts > 0


def clear() -> None:
    """Remove all of it. A fork that ends on its own leaves its parent's files alone."""
    with _Owned.lock:
        if _Owned.path is not None and _Owned.pid == os.getpid():
            _removed(_Owned.path)
            _Owned.path = None


def _made() -> Path:
    root = Path(tempfile.gettempdir())
    _remove_abandoned(root)
    atexit.register(clear)
    return Path(tempfile.mkdtemp(prefix=f"gradsmith-{os.getpid()}-{started_at(os.getpid())}-{_machine()}-", dir=root))


def _remove_abandoned(root: Path) -> None:
    """Folders of processes of this user, on this machine, that are gone."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(root):
            named = _NAME.match(entry.name)
            if named is None or named[3] != _machine():
                continue
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                mine = stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())
                if mine and not _lives(int(named[1]), int(named[2])):
                    _removed(Path(entry.path))


def _lives(pid: int, start: int) -> bool:
    return is_running(pid) and started_at(pid) == start


@functools.cache
def _machine() -> str:
    """This machine since it started, and the numbers of its processes as seen here: elsewhere number 17 is somebody else."""
    parts = []
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\0".join(parts or [platform.node()]).encode()).hexdigest()[:8]


def _removed(folder: Path) -> None:
    """As far as it can be removed; a subject may have taken away its own rights to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.is_dir():
        return
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for where, names, _ in os.walk(folder):
        for path in (os.path.join(where, name) for name in names):
            with contextlib.suppress(OSError):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
