"""The user's cache folder, and files in it that are either whole and ours or not there.

No folder that was there before is changed. What is read must be a plain file of this user's, under the name it was written
for, and whole; anything else (torn, foreign, special, forged by copying another entry) counts as missing and is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_DIGEST = 32
_LARGEST = 256 << 20


def cache_folder(name: str) -> Path | None:
    """A folder of our own in the user's cache, private to the user; None where that cannot be had.

    GRADSMITH_CACHE_DIR wins, then where this system keeps caches (on Linux XDG_CACHE_HOME, else ~/.cache). Nothing is left behind
    where nothing could be kept.
    """
    try:
        above = root()
        folder = above / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if is_private(folder) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError, ValueError):  # RuntimeError: the user has no home; ValueError: a null character
        return None


def root() -> Path:
    """Where all our folders are, whether or not it exists; raises RuntimeError for a user without a home."""
    chosen = os.environ.get("GRADSMITH_CACHE_DIR")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    found = user_cache_path("gradsmith", appauthor=False)
    if not found.is_absolute():
        raise RuntimeError("the user has no home")
    return found


def is_private(folder: Path) -> bool:
    """A real folder of this user's, into which nobody else can write."""
    found = folder.lstat()
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISDIR(found.st_mode) and mine and not found.st_mode & 0o022


def write_whole(path: Path, data: bytes) -> bool:
    """Write `data` and its digest under another name, then rename; whether that worked. A full disk is no reason to fail."""
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(_digest(path, data) + data)
        os.replace(unfinished, path)
    except OSError:
        if unfinished:
            with contextlib.suppress(OSError):
                Path(unfinished).unlink(missing_ok=True)
        return False
    return True


def read_whole(path: Path) -> bytes | None:
    """What `write_whole` wrote under this name; None when there is nothing, or anything else."""
    content = read_own(path)
    if content is None:
        return None
    digest, data = content[:_DIGEST], content[_DIGEST:]
    return data if _digest(path, data) == digest else None


def read_own(path: Path) -> bytes | None:
    """The bytes of a plain file that belongs to this user, and that nobody else can write to; else None."""
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        found = os.fstat(descriptor)
        mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if not stat.S_ISREG(found.st_mode) or not mine or found.st_mode & 0o022 or found.st_size > _LARGEST:
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read(_LARGEST + 1)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError):
        yield None
        return
    try:
        yield descriptor
    except OSError:
        return
    finally:
        os.close(descriptor)


def _digest(path: Path, data: bytes) -> bytes:
    """Of the content and of the name it stands under: an entry that was moved or copied is not this one."""
    return hashlib.sha256(os.fsencode(path.name) + b"\0" + data).digest()
