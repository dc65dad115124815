"""The user's cache folder, and files in it that are either whole or not there."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST = 32


def cache_folder(name: str) -> Path | None:
    """A folder of our own in the user's cache, private to the user; None where that cannot be had.

    GRADSMITH_CACHE_DIR wins, then XDG_CACHE_HOME, then ~/.cache.
    """
    try:
        above = root()
        folder = above / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for made in (above, folder):
            if made.stat().st_mode & 0o777 != 0o700:
                made.chmod(0o700)
        mine = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
        return folder if mine and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None


def root() -> Path:
    """Where all our folders are, whether or not it exists; raises RuntimeError for a user without a home."""
    chosen = os.environ.get("GRADSMITH_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(chosen) if chosen else (Path(base) if base else Path.home() / ".cache") / "gradsmith"


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` and its digest under another name, then rename. A full disk is no reason to fail."""
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(hashlib.sha256(data).digest() + data)
        os.replace(unfinished, path)
    except OSError:
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)


def read_whole(path: Path) -> bytes | None:
    """What `write_whole` wrote; None when there is nothing, or its digest does not fit."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, data = content[:_DIGEST], content[_DIGEST:]
    return data if hashlib.sha256(data).digest() == digest else None
