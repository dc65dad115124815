"""What a process saw of the outside world: files, folders, environment, modules. A verdict holds as long as these stay the same.

`watch()` begins, before torch is imported; what a fork sees is its own from then on. Python itself tells what is opened, listed and
started (audit events); the environment is watched where Python reads it. What a C library reads by itself is not seen.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What Python announces before it happens, and why a verdict cannot be remembered after it.
_BEYOND = {
    "socket.connect": "connects to the network",
    "socket.getaddrinfo": "asks the network",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.exec": "starts a program",
}
_NEVER = ("/proc/", "/sys/", "/dev/")
_CACHES = (  # what others keep there is made from what is watched already
    os.path.join(tempfile.gettempdir(), "torchinductor_"),
    os.path.join(os.path.expanduser("~"), ".triton"),
    os.path.join(tempfile.gettempdir(), "gradsmith-"),
)
OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_IMPORTLIB = os.path.join(sysconfig.get_path("stdlib"), "importlib")
_stat = os.stat


def _installed_folders() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(sorted({os.path.realpath(p) + os.sep for p in paths if p} | {p + os.sep for p in paths if p}))


INSTALLED = _installed_folders()


@dataclass
class _Seen:
    """What was seen so far, by absolute path."""

    since: float = 0.0
    our_folder: str = ""  # of this run: what is in it is ours
    opened: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    listed: dict[str, bool] = field(default_factory=dict)  # folder -> whether somebody besides an import looked
    asked: dict[str, str] = field(default_factory=dict)  # path -> what os.stat said of it
    variables: set[bytes] = field(default_factory=set)
    whole_environment: bool = False
    beyond: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Known:
    """What was loaded before any subject: told by the name of a list, which is written once for all that fork from here."""

    group: str  # a digest of the list
    file: str  # where the list stands


_seen: _Seen | None = None
_known: _Known | None = None


class _Variables(dict[Any, Any]):
    """The store behind os.environ, which notes what is read of it."""

    def __getitem__(self, key: Any) -> Any:
        if _seen is not None:
            _seen.variables.add(key)
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        if _seen is not None and _user_asks():
            _seen.whole_environment = True
        return super().__iter__()


def watch(folder: Path) -> None:
    """Begin; `folder` is the one of this run. Only for a process that exists to check: an audit hook stays until the process ends."""
    global _seen
    if _seen is not None:
        return
    _seen = _Seen(time.time(), f"{folder}{os.sep}")
    environment: Any = os.environ
    environment._data = _Variables(environment._data)
    os.stat = _asking
    for able in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        able.update({_asking} if _stat in able else ())  # others ask these sets what os.stat can do
    sys.addaudithook(_hear)


def from_now() -> None:
    """A new subject: what changes on disk from now on may or may not have been what it saw."""
    if _seen is not None:
        _seen.since = time.time()


def settle() -> None:
    """What is loaded now, no subject has to tell again: thousands of installed files, in each of its forks."""
    global _known
    if _seen is None:
        return
    files, installed = _relevant(_loaded() | _seen.opened)
    text = json.dumps(installed)
    group = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    file = f"{_seen.our_folder}{group}.paths"
    try:
        with open(file, "w", encoding="utf-8", errors="surrogatepass") as stream:
            stream.write(text)
    except OSError:  # each of them tells it all, then
        return
    _seen.opened = set(files)
    _known = _Known(group, file)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    if event == "open":
        _opened(args)
    elif event in ("os.listdir", "os.scandir"):
        _listed(args[0] if args else None)
    elif event == "ctypes.dlopen" and args and isinstance(args[0], str) and os.sep in args[0]:
        _seen.opened.add(os.path.abspath(args[0]))
    elif event == "import" and len(args) > 1 and isinstance(args[1], str):  # a compiled module, which nobody opens
        _seen.opened.add(os.path.abspath(args[1]))
    elif event in _BEYOND and _user_asks():
        _seen.beyond[_BEYOND[event]] = None


def _opened(args: tuple[Any, ...]) -> None:
    path, mode, flags = args
    if isinstance(path, int) or path is None or _seen is None:
        return
    name = os.path.abspath(os.fsdecode(path))
    writes = (flags or 0) & (os.O_WRONLY | os.O_RDWR) if not isinstance(mode, str) else set(mode) & set("wax+")
    if writes and name not in _seen.opened:
        _seen.written.add(name)
    elif name not in _seen.written:
        _seen.opened.add(name)


def _listed(folder: Any) -> None:
    if isinstance(folder, int) or _seen is None:
        return
    name = os.path.abspath(os.fsdecode(folder)) if folder else os.getcwd()
    importing = sys._getframe(2).f_code.co_filename.startswith(("<frozen importlib", _IMPORTLIB))
    _seen.listed[name] = _seen.listed.get(name, False) or not importing


def _asking(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
    """os.stat, which notes what it says: whether something is there, of what kind and size."""
    try:
        found = _stat(path, *args, **kwargs)
    except OSError:
        _note_asked(path, None)
        raise
    _note_asked(path, found)
    return found


def _note_asked(path: Any, found: os.stat_result | None) -> None:
    if _seen is not None and not isinstance(path, int):
        try:
            _seen.asked[os.path.abspath(os.fsdecode(path))] = kind_of(found)
        except (TypeError, ValueError):
            return


def kind_of(found: os.stat_result | None) -> str:
    """What is there: nothing, a folder, or a file of some size. Times do not count: a checkout changes them."""
    if found is None:
        return "nothing"
    return f"file of {found.st_size}" if found.st_mode & 0o100000 else "other"


def _user_asks() -> bool:
    """Whether code that is neither installed nor ours is running."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<") and not name.startswith((*INSTALLED, OURS)):
            return True
        frame = frame.f_back
    return False


def told() -> dict[str, Any]:
    """What this process saw, as JSON; empty where nobody watched."""
    if _seen is None:
        return {}
    # A look at each module would write into the memory that all forks share; what was loaded since was opened.
    files, installed = _relevant(_seen.opened | (_loaded() if _known is None else set()))
    paths = {*files, *installed}
    folders = {p: whole for p, whole in _seen.listed.items() if not _irrelevant(p)}
    asked = {p: kind for p, kind in _seen.asked.items() if p not in paths and p not in folders and _foreign(p)}
    beyond = list(_seen.beyond)
    if _accelerated():
        beyond.append("may use a GPU, whose state is not known without torch")
    return {
        "since": _seen.since,
        "files": files,
        "installed": installed,
        "installed before": {"group": _known.group, "file": _known.file} if _known is not None else None,
        "folders": folders,
        "installed folders": [p for p in folders if f"{p}{os.sep}".startswith(INSTALLED)],
        "asked": asked,
        "variables": sorted(os.fsdecode(v) for v in _seen.variables),
        "whole environment": _seen.whole_environment,
        "beyond": beyond,
    }


def _relevant(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those that count, in order: files of users, and installed ones."""
    files: list[str] = []
    installed: list[str] = []
    for path in sorted({_source_for(p) for p in paths if p}):
        if not _irrelevant(path):
            (installed if path.startswith(INSTALLED) else files).append(path)
    return files, installed


def _source_for(path: str) -> str:
    """The source of compiled bytecode; any other path as it is."""
    if not path.endswith(".pyc"):
        return path
    try:
        return importlib.util.source_from_cache(path)
    except (ValueError, NotImplementedError):
        return path


def _loaded() -> set[str]:
    """The files of all modules that are loaded."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {os.path.abspath(file) for file in files if isinstance(file, str) and not file.startswith("<")}


def _irrelevant(path: str) -> bool:
    hidden = path.startswith((*_NEVER, *_CACHES, OURS)) or f"{os.sep}__pycache__" in path
    return hidden or path.startswith((_own_cache(), *([_seen.our_folder] if _seen is not None else [])))


@functools.lru_cache(maxsize=1)
def _own_cache() -> str:
    from gradsmith.storage import root

    return f"{root()}{os.sep}"


def _foreign(path: str) -> bool:
    return not path.startswith(INSTALLED) and not _irrelevant(path) and not os.path.basename(path).startswith("<")


def _accelerated() -> bool:
    torch = sys.modules.get("torch")
    return bool(torch is not None and torch.cuda.is_available())
