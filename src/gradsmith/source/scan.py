"""Which files to read, and a first look at their bytes that spares parsing most of them.

Parsing is what costs: `ast.parse` of the torch package takes 6 s, reading it 0.1 s. So a file is parsed only when its
bytes mention a custom gradient, a loop in a layer, or a word that a file rule asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from gradsmith.findings import GradsmithError

# Folders that hold other people's code or generated code. A folder the user names is read whatever it is called.
OTHERS_CODE = frozenset(
    (".venv", "venv", ".env", "env", "site-packages", "dist-packages", "node_modules", "__pypackages__", "__pycache__",
     ".git", ".hg", ".svn", ".tox", ".nox", ".eggs", ".mypy_cache", ".ruff_cache", ".pytest_cache",
     ".ipynb_checkpoints", ".direnv", ".pixi")
)  # fmt: skip
BUILD_FOLDERS = frozenset(("build", "dist", "_build"))
ENDINGS = (".py",)
WITH_NOTEBOOKS = (".py", ".ipynb")


class SourceFile(NamedTuple):
    """One file's bytes; `named` when the user gave this very path, rather than a folder above it."""

    path: str
    data: bytes
    named: bool = False


class Unreadable(NamedTuple):
    """A file that could not be opened, and why."""

    path: str
    reason: str


class Unpromising(NamedTuple):
    """A file that is known, from an earlier look at the same bytes, to hold nothing for us."""

    path: str
    size: int


class Unread(NamedTuple):
    """A file that is to be read."""

    path: str
    named: bool = False


Seen = SourceFile | Unreadable | Unpromising | Unread
Excluded = Callable[[str], bool]


def read_all(
    paths: Iterable[str | os.PathLike[str]], endings: tuple[str, ...] = ENDINGS, excluded: Excluded | None = None
) -> Iterator[SourceFile | Unreadable]:
    """Every Python file at or under `paths`, once each, in a stable order."""
    return (read(file) for file in find_all(paths, endings, excluded))


def read(file: Unread) -> SourceFile | Unreadable:
    """The bytes of a file, or why there are none."""
    try:
        return SourceFile(file.path, _bytes(file.path), file.named)
    except OSError as error:
        return Unreadable(file.path, f"cannot be read: {error.strerror or error}")


def _bytes(path: str) -> bytes:
    # Without the layers of `open`: half the time for thousands of small files.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        if len(data) > size:  # no plain file, or one that grows
            while more := os.read(descriptor, 1 << 20):
                data += more
        return data
    finally:
        os.close(descriptor)


def find_all(
    paths: Iterable[str | os.PathLike[str]], endings: tuple[str, ...] = ENDINGS, excluded: Excluded | None = None
) -> Iterator[Unread]:
    """Every such file, not yet opened. `excluded` speaks of what is found in folders; a file that is named is wanted."""
    seen: set[str] = set()
    for given in paths:
        root = os.fspath(given)
        if os.path.isdir(root):
            found: Iterable[str] = _under(root, endings)
        elif os.path.exists(root):
            found = (root,)
        else:
            raise GradsmithError(f"no such file or folder: {root}")
        for path in found:
            if path in seen:
                continue
            seen.add(path)
            if excluded is not None and path != root and excluded(path):
                continue
            yield Unread(path, path == root)


def _under(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Files, then folders, each in the order of their names. Twice as fast as os.walk, which asks more."""
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name not in OTHERS_CODE and not entry.is_symlink():
                        folders.append(entry)
                elif entry.name.endswith(endings) and (entry.is_file() or entry.is_symlink()):
                    files.append(entry.path)  # no pipes: reading one waits for a writer; a dangling link is reported
    except OSError:
        return
    yield from sorted(files)
    for entry in sorted(folders, key=lambda entry: entry.name):
        if not _is_generated(entry):
            yield from _under(entry.path, endings)


def _is_generated(folder: os.DirEntry[str]) -> bool:
    if folder.name in BUILD_FOLDERS:
        # `torch/distributed/_tools/build` may be a package of the project; a build folder of a project is not.
        return not os.path.exists(os.path.join(folder.path, "__init__.py"))
    return os.path.exists(os.path.join(folder.path, "pyvenv.cfg"))


class Mentioned(NamedTuple):
    """Could these bytes define an autograd.Function (or a custom op's gradient); an nn.Module whose forward loops?"""

    function: bool
    layer: bool
    backward: bool  # the word


def mentioned(data: bytes) -> Mentioned:
    """What the bytes may define. Most files hold none of it, so what several words share is looked for first."""
    forward, backward = b"def forward" in data, b"backward" in data
    function = (
        (backward and (b"def backward" in data or b"save_for_backward" in data))
        or (b"autograd" in data and _mentions_autograd(data))
        or (forward and (b"Function)" in data or (b"def vjp" in data and b"ctx" in data)))
    )
    layer = forward and b"def forward(" in data and b"Module" in data and (b" for " in data or b" while " in data)
    return Mentioned(function, layer, backward)


def _mentions_autograd(data: bytes) -> bool:
    if b"autograd.Function" in data or b"register_autograd" in data:
        return True
    # A base class may leave forward and backward to others.
    return b"ward" not in data and b"Function" in data
