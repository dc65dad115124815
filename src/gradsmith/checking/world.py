"""The outside world as it looks now, in texts that can be compared: what a remembered verdict depends on. Never imports torch."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradsmith.lab.process.witness import INSTALLED

# Names under which an import looks for something in a folder.
_IMPORTABLE = (".py", ".pyc", ".so", ".pyd", ".pth", ".zip")
# What only tells where and in which session a shell or a test runs: part of no key, not even where all of the environment is.
_SESSION = frozenset(
    (
        "PYTEST_CURRENT_TEST",
        "_",
        "COLUMNS",
        "LINES",
        "OLDPWD",
        "SHLVL",
        "TERM",
        "TERM_PROGRAM",
        "COLORTERM",
        "FORCE_COLOR",
        "NO_COLOR",
    )
)
# Variables that libraries read without Python: they count whether or not anybody was seen reading them.
_IN_C: tuple[str, ...] = (
    "OMP_",
    "MKL_",
    "KMP_",
    "GOMP_",
    "OPENBLAS",
    "DNNL",
    "ONEDNN",
    "ATEN_",
    "TORCH",
    "PYTORCH",
    "CUDA",
    "CUBLAS",
)
_IN_C += ("NVIDIA", "HIP", "ROCR", "TRITON", "PYTHON", "LD_", "DYLD_", "LC_", "LANG", "TZ")
_LAG = 0.05  # file systems tell time a little late


@dataclass
class World:
    """One look at the world: each file is read once, however many verdicts depend on it."""

    _files: dict[str, str] = field(default_factory=dict)
    _folders: dict[tuple[str, bool], str] = field(default_factory=dict)
    _installed: dict[str, str] = field(default_factory=dict)

    def later(self) -> World:
        """A new look, but not at what is installed: where that changed during a run, the verdict is measured again."""
        folders = {key: names for key, names in self._folders.items() if f"{key[0]}{os.sep}".startswith(INSTALLED)}
        return World({}, folders, self._installed)

    def file(self, path: str) -> str:
        """A digest of what the file holds."""
        if path not in self._files:
            try:
                with open(path, "rb") as stream:
                    self._files[path] = hashlib.blake2b(stream.read(), digest_size=16).hexdigest()
            except OSError:
                self._files[path] = "nothing"
        return self._files[path]

    def folder(self, path: str, whole: bool) -> str:
        """A digest of the names in a folder; of those that an import may find, unless somebody else looked."""
        if (path, whole) not in self._folders:
            try:
                with os.scandir(path) as entries:
                    names = sorted(e.name for e in entries if whole or _importable(e))
            except OSError:
                names = ["nothing"]
            self._folders[path, whole] = digest(names)
        return self._folders[path, whole]

    def installed(self, paths: Iterable[str], group: str) -> str:
        """How installed files look from outside (size and time), all together; `group` names this list of them."""
        if group not in self._installed:
            self._installed[group] = digest([_look(path) for path in paths])
        return self._installed[group]

    def asked(self, path: str) -> str:
        """Whether something is there: nothing, a file of some size, or a folder."""
        try:
            found = os.stat(path)
        except OSError:
            return "nothing"
        return f"file of {found.st_size}" if stat.S_ISREG(found.st_mode) else "other"


def variables(names: Iterable[str], *, whole: bool) -> dict[str, str | None]:
    """The environment as far as it matters: these names, what C libraries read, or all of it."""
    wanted = {*names, *(name for name in os.environ if name.startswith(_IN_C))}
    if whole:
        wanted |= set(os.environ)
    return {name: os.environ.get(name) for name in sorted(wanted - _SESSION)}


def young(paths: Iterable[str], since: float) -> str:
    """The first of these files that was written after `since`; empty where none was."""
    for path in paths:
        with contextlib.suppress(OSError):
            found = os.stat(path)
            if max(found.st_mtime, found.st_ctime) >= since - _LAG:
                return path
    return ""


def sources_in(folders: Mapping[str, bool]) -> list[str]:
    """The Python files that stand in these folders."""
    found = []
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found += [e.path for e in entries if e.name.endswith(".py")]
    return found


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _importable(entry: os.DirEntry[str]) -> bool:
    if entry.name.endswith(_IMPORTABLE):
        return True
    return entry.name[0] != "." and entry.name != "__pycache__" and entry.is_dir()


def _look(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return f"{path} nothing"
    return f"{path} {found.st_mtime_ns} {found.st_size}" if stat.S_ISREG(found.st_mode) else path
