"""Which files to read, and a first look at their bytes that spares parsing most of them.

Parsing is what costs: `ast.parse` of the torch package takes 6 s, reading it 0.1 s. So a file is parsed only when its
bytes mention a custom gradient, a loop in a layer, or a word that a file rule asked for.
"""

from __future__ import annotations

import os
import stat
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
# A syntax tree takes about a hundred times the size of its text; a notebook is mostly pictures, which are dropped.
LARGEST = 16 << 20
LARGEST_NOTEBOOK = 128 << 20
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | os.O_CLOEXEC
)


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


def read(file: Unread | Unreadable) -> SourceFile | Unreadable:
    """The bytes of a file, or why there are none."""
    if isinstance(file, Unreadable):
        return file
    try:
        return SourceFile(file.path, plain_bytes(file.path), file.named)
    except NotPlain as error:
        return Unreadable(file.path, str(error))
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        return Unreadable(file.path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


class NotPlain(Exception):
    """What stands under a name is not a file of sensible size; the text says what it is."""


def plain_bytes(path: str) -> bytes:
    """The bytes of a plain file. Opening waits for nobody, changes no terminal, and reads no more than `LARGEST`."""
    # Without the layers of `open`: half the time for thousands of small files.
    descriptor = os.open(path, _FLAGS)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotPlain(f"is {_kind(found.st_mode)}, not a file")
        largest = LARGEST_NOTEBOOK if path.endswith(WITH_NOTEBOOKS[1]) else LARGEST
        if found.st_size > largest:
            raise NotPlain(f"has {found.st_size >> 20} MiB; files of more than {largest >> 20} MiB are not read")
        data = os.read(descriptor, found.st_size + 1)
        if len(data) > found.st_size:  # one that grows, or that does not know its size
            while len(data) <= largest and (more := os.read(descriptor, 1 << 20)):
                data += more
            if len(data) > largest:
                raise NotPlain(f"does not end after {largest >> 20} MiB")
        return data
    finally:
        os.close(descriptor)


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"))
    named = next((words for test, words in kinds if test(mode)), None)
    return named or ("a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "something else")


def find_all(
    paths: Iterable[str | os.PathLike[str]], endings: tuple[str, ...] = ENDINGS, excluded: Excluded | None = None
) -> Iterator[Unread | Unreadable]:
    """Every such file, not yet opened; and every folder that cannot be looked into.

    `excluded` is asked about what is found in folders; a file that is named is wanted.
    """
    seen: set[str] = set()
    for given in paths:
        root = os.fspath(given)
        if os.path.isdir(root):
            found: Iterable[Unread | Unreadable] = _under(root, endings)
        elif os.path.lexists(root):
            found = (Unread(root, True),)
        else:
            raise GradsmithError(f"no such file or folder: {root}")
        for file in found:
            if file.path in seen:
                continue
            seen.add(file.path)
            if excluded is None or file.path == root or not excluded(file.path):
                yield file


def _under(root: str, endings: tuple[str, ...]) -> Iterator[Unread | Unreadable]:
    """Files, then folders, each in the order of their names. Twice as fast as os.walk, which asks more."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        files, folders = [], []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if _is_folder(entry):
                        if entry.name not in OTHERS_CODE and not entry.is_symlink():
                            folders.append(entry)
                    elif entry.name.endswith(endings):
                        files.append(entry.path)
        except OSError as error:
            yield Unreadable(folder, f"is a folder that cannot be read: {error.strerror or error}")
        yield from map(Unread, sorted(files))
        below = sorted(folders, key=lambda entry: entry.name, reverse=True)
        waiting += [entry.path for entry in below if not _is_generated(entry)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """What cannot be asked (a link to itself) costs that entry, not its folder: reading it will say why."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_generated(folder: os.DirEntry[str]) -> bool:
    if folder.name in BUILD_FOLDERS:
        # `torch/distributed/_tools/build` may be a package of the project; a build folder of a project is not.
        return not os.path.exists(os.path.join(folder.path, "__init__.py"))
    return os.path.exists(os.path.join(folder.path, "pyvenv.cfg"))


# Words that many others contain: where one is missing, nobody looks for what is made of it.
STEMS = (b"grad", b"def forward", b"backward")


class Known(NamedTuple):
    """What bytes tell without any rule: where each of the `STEMS` first stands (-1: nowhere), what they could define.

    `function`: an autograd.Function, or a custom op's gradient. `layer`: an nn.Module whose forward loops.
    """

    stems: tuple[int, ...]
    function: bool
    layer: bool


def known(data: bytes) -> Known:
    """What the bytes may define. Most files hold none of it."""
    # A longer word is looked for from where its stem first stands, not from the beginning.
    grad, forward, backward = stems = tuple([data.find(stem) for stem in STEMS])
    function = (
        (backward >= 0 and _follows(data, b"backward", backward, (b"def ", b"save_for_")))
        or (grad >= 0 and _mentions_autograd(data, grad, forward >= 0 or backward >= 0))
        or (forward >= 0 and (b"Function)" in data or (b"def vjp" in data and b"ctx" in data)))
    )
    layer = forward >= 0 and data.find(b"def forward(", forward) >= 0 and b"Module" in data
    layer = layer and (b" for " in data or b" while " in data)
    return Known(stems, function, layer)


def _follows(data: bytes, word: bytes, at: int, before: tuple[bytes, ...]) -> bool:
    """Whether the word, which first stands at `at`, ever stands right behind one of these."""
    while at >= 0:
        if data.endswith(before, 0, at):
            return True
        at = data.find(word, at + 1)
    return False


def _mentions_autograd(data: bytes, grad: int, ward: bool) -> bool:
    at = first = data.find(b"autograd", max(0, grad - 4))
    while at >= 0:
        if data.startswith(b".Function", at + 8) or data.endswith(b"register_", 0, at):
            return True
        at = data.find(b"autograd", at + 8)
    # A base class may leave forward and backward to others.
    return first >= 0 and not ward and b"ward" not in data and b"Function" in data
