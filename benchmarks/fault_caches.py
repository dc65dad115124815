"""Broken, torn, foreign, special and forged entries in the caches, and folders that cannot be used: results stay the same."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from fault_runs import Ground, Outcome, ground

_SOURCE = """
import torch


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
"""
# What compiled code is asked for in a process of its own: the answer, and whether anything was said.
_COMPILED = """
from gradsmith.native.compile import load
library = load("long answer(void) { return 42; }")
assert library.answer() == 42
"""
Break = Callable[[Path], object]


def _rewritten(change: Callable[[bytes], bytes]) -> Break:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def _forged(content: bytes) -> Break:
    """With a digest that fits, as one who knows how it is made would write it."""

    def write(path: Path) -> None:
        digest = hashlib.sha256(os.fsencode(path.name) + b"\0" + content).digest()
        path.write_bytes(content + digest if path.suffix == ".so" else digest + content)

    return write


def _instead(make: Callable[[Path], object]) -> Break:
    def replaced(path: Path) -> None:
        path.unlink()
        make(path)

    return replaced


def _owned(path: Path) -> None:
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)


def _of_another(path: Path) -> None:
    """Whole, and the content of an entry that stood elsewhere."""
    data, at_end = path.read_bytes(), path.suffix == ".so"
    content = data[:-32] if at_end else data[32:]
    digest = hashlib.sha256(b"0000" + os.fsencode(path.suffix) + b"\0" + content).digest()
    path.write_bytes(content + digest if at_end else digest + content)


ENTRY: dict[str, Break] = {
    "empty": lambda path: path.write_bytes(b""),
    "one byte": lambda path: path.write_bytes(b"x"),
    "cut in half": _rewritten(lambda data: data[: len(data) // 2]),
    "one bit flipped": _rewritten(lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:]),
    "a byte too many": _rewritten(lambda data: data + b"\0"),
    "random bytes": lambda path: path.write_bytes(hashlib.sha512(b"x").digest() * 1000),
    "forged, not what it should be": _forged(b'{"looks": 7}'),
    "forged, not JSON": _forged(b"\xff\xfe"),
    "forged, a list": _forged(b"[" * 5000 + b"]" * 5000),
    "forged, a report of the wrong types": _forged(
        json.dumps({"looks": {"a": ["x", 1, 2, 3]}, "unpromising": 3, "report": {"findings": 7}}).encode()
    ),
    "under another's name": _of_another,
    "a folder": _instead(lambda path: path.mkdir()),
    "a named pipe": _instead(lambda path: os.mkfifo(path)),
    "a link to a device": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "a link to a file elsewhere": _instead(lambda path: path.symlink_to("/etc/passwd")),
    "somebody else's": _owned,
    "writable by everybody": lambda path: path.chmod(0o666),
    "unreadable": lambda path: path.chmod(0),
}
FOLDER: dict[str, Callable[[Ground], dict[str, str]]] = {}


def _folder(words: str) -> Callable[[Callable[[Ground], dict[str, str]]], Callable[[Ground], dict[str, str]]]:
    def keep(make: Callable[[Ground], dict[str, str]]) -> Callable[[Ground], dict[str, str]]:
        FOLDER[words] = make
        return make

    return keep


@_folder("the cache is a file")
def _file(place: Ground) -> dict[str, str]:
    (place.folder / "plain").write_text("mine")
    return {"GRADSMITH_CACHE_DIR": str(place.folder / "plain")}


@_folder("the cache is a folder of the user's, open to all")
def _open(place: Ground) -> dict[str, str]:
    shared = place.folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    return {"GRADSMITH_CACHE_DIR": str(shared)}


@_folder("the cache's own folder is open to all")
def _own_open(place: Ground) -> dict[str, str]:
    for name in ("lint", "recurrent"):
        (place.cache / name).mkdir()
        (place.cache / name).chmod(0o777)
    return {}


@_folder("the cache's own folder is a link")
def _own_link(place: Ground) -> dict[str, str]:
    elsewhere = place.folder / "elsewhere"
    elsewhere.mkdir()
    for name in ("lint", "recurrent"):
        (place.cache / name).symlink_to(elsewhere)
    return {}


@_folder("the cache's own folder is somebody else's")
def _own_foreign(place: Ground) -> dict[str, str]:
    for name in ("lint", "recurrent"):
        (place.cache / name).mkdir()
        _owned(place.cache / name)
    return {}


@_folder("the cache lies below /dev/null")
def _nowhere(place: Ground) -> dict[str, str]:
    return {"GRADSMITH_CACHE_DIR": "/dev/null/cache"}


@_folder("the cache lies below /proc")
def _proc(place: Ground) -> dict[str, str]:
    return {"GRADSMITH_CACHE_DIR": "/proc/cache"}


@_folder("the name of the cache is too long")
def _long(place: Ground) -> dict[str, str]:
    return {"GRADSMITH_CACHE_DIR": "/tmp/" + "x" * 300}


@_folder("there is no home")
def _homeless(place: Ground) -> dict[str, str]:
    return {"GRADSMITH_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/nonexistent/home"}


@_folder("the home is a device")
def _device(place: Ground) -> dict[str, str]:
    return {"GRADSMITH_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/dev/full"}


def cases() -> list[tuple[str, str]]:
    return [(kind, name) for kind in ("lint", "compiled") for name in (*ENTRY, *FOLDER)]


def tried(kind: str, name: str) -> Outcome:
    outcome = Outcome(f"{kind}: {name}")
    with ground() as place:
        (place.files / "wrong.py").write_text(_SOURCE)
        environment: dict[str, str] = {}
        if name in ENTRY:
            if (trouble := _asked(place, kind, {})) != "":
                outcome.trouble = f"before: {trouble}"
                return outcome
            entries = [path for path in place.cache.rglob("*") if path.suffix in (".json", ".so")]
            for path in entries:
                ENTRY[name](path)
            outcome.trouble = "" if entries else "nothing was kept"
        else:
            environment = FOLDER[name](place)
        modes = {path: path.lstat().st_mode for path in (place.folder / "shared", place.cache) if path.exists()}
        outcome.trouble = outcome.trouble or _asked(place, kind, environment)
        changed = [path.name for path, mode in modes.items() if path.lstat().st_mode != mode]
        if changed:
            outcome.trouble = (
                f"the mode of {changed[0]} is {stat.filemode((place.folder / changed[0]).lstat().st_mode)} now"
            )
        return place.left(outcome)


def _asked(place: Ground, kind: str, environment: dict[str, str]) -> str:
    if kind == "lint":
        done = place.run("lint", ".", "--format", "json", seconds=60, **environment)
        if done.returncode != 1 or "return-count" not in done.stdout:
            return f"exit status {done.returncode}: {done.stderr.strip()[-200:]}"
        return ""
    try:
        made = subprocess.run(
            [sys.executable, "-c", _COMPILED],
            env=place.environment(**environment),
            capture_output=True,
            text=True,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return "it did not end"
    return made.stderr.strip()[-300:] if made.returncode else ""
