"""The compiled modules of `gradsmith lint` in one file: 230 small imports cost more than linting a small project.

Importing a module means looking for it, opening its .pyc and reading it, about 1 ms each. The bundle holds the code of all of them and
lies beside the .pyc files of the package, in `__pycache__`. It is written at the end of a run that had to import something the usual way.
Like a .pyc, the code of a module is used only while its source has the time and size it had then; any other module is imported as
always. Without a bundle (a package folder that cannot be written) everything works, and starts more slowly.

It also holds what `dataclasses` and `namedtuple` compile: they write the methods of a class as text, and compiling 220 such
texts takes 9 ms of the start. A text is the key to its own code, so nothing can go stale.
"""

from __future__ import annotations

import collections
import dataclasses
import marshal
import os
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from gradsmith.about import FOLDER

_PACKAGE = "gradsmith"
# Marshalled code belongs to one version of Python; the magic number of .pyc files says which.
_FORMAT = (2, sys.implementation.cache_tag, sys.hexversion)


class _Held(NamedTuple):
    """One module: its file, how that looked, whether it is a package, and its code, still marshalled."""

    path: str
    modified: int
    size: int
    is_package: bool
    code: bytes


class Bundle:
    """Finds and loads modules from the code at hand. Anything that does not fit is left to the usual import."""

    def __init__(self, held: dict[str, _Held], texts: Texts) -> None:
        self.held = held
        self.texts = texts
        self.served: set[str] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        held = self.held.get(name)
        if held is None or not _is_unchanged(held):
            return None
        spec = ModuleSpec(name, self, origin=held.path, is_package=held.is_package)  # type: ignore[arg-type]
        if held.is_package:
            spec.submodule_search_locations = [os.path.dirname(held.path)]
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self.served.add(module.__name__)
        exec(self._code(module.__name__), module.__dict__)

    def get_source(self, name: str) -> str:
        """For tracebacks and inspect."""
        with open(self.held[name].path, encoding="utf-8") as stream:
            return stream.read()

    def _code(self, name: str) -> CodeType:
        code: CodeType = marshal.loads(self.held[name].code)
        return code


class Texts:
    """The code of texts that were compiled before; stands in for `exec` and `eval` in the modules that write methods."""

    def __init__(self, known: dict[str, CodeType]) -> None:
        self.known = known
        self.used: dict[str, CodeType] = {}

    def exec(self, text: str, globals: dict[str, Any], locals: Mapping[str, object] | None = None) -> None:
        exec(self._code(text, "exec"), globals, locals)

    def eval(self, text: str, globals: dict[str, Any]) -> object:
        return eval(self._code(text, "eval"), globals)

    def _code(self, text: str, mode: str) -> CodeType:
        code = self.known.get(text) or compile(text, "<string>", mode)
        self.used[text] = code
        return code

    def serve(self) -> None:
        """A module's own name wins over the built-in one. Where a later Python compiles in another way, nothing happens."""
        vars(dataclasses)["exec"] = self.exec
        vars(collections)["eval"] = self.eval


def serve() -> None:
    """Import from the bundle from now on, as far as it reaches."""
    held, texts = _read() or ({}, {})
    bundle = Bundle(held, Texts(texts))
    bundle.texts.serve()
    sys.meta_path.insert(0, bundle)


def keep() -> None:
    """Write the bundle again where this run had to import a module of ours the usual way."""
    bundle = next((finder for finder in sys.meta_path if isinstance(finder, Bundle)), None)
    if bundle is None or sys.dont_write_bytecode:
        return
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == _PACKAGE}
    # What was imported before the bundle could be asked is no reason to write.
    missing = [n for n in loaded if n not in bundle.served and n not in bundle.held]
    stale = [n for n in loaded if n not in bundle.served and n in bundle.held and not _is_unchanged(bundle.held[n])]
    if missing or stale:
        held = {n: h for n, h in bundle.held.items() if _is_unchanged(h)}
        held.update((n, new) for n in loaded if n not in held and (new := _compiled(loaded[n])) is not None)
        if held.keys() != bundle.held.keys() or stale:
            _write(held, bundle.texts.used if stale else {**bundle.texts.known, **bundle.texts.used})


def _is_unchanged(held: _Held) -> bool:
    try:
        now = os.stat(held.path)
    except OSError:
        return False
    return now.st_mtime_ns == held.modified and now.st_size == held.size


def _compiled(module: ModuleType) -> _Held | None:
    """The module's code, from the .pyc that Python keeps of it."""
    from importlib.util import cache_from_source

    path = getattr(module, "__file__", None) or ""
    try:
        look = os.stat(path)
        with open(cache_from_source(path), "rb") as stream:
            header, code = stream.read(16), stream.read()
    except (OSError, NotImplementedError):
        return None
    # A .pyc that names its source by a hash, or an older source, is not one to copy.
    fits = header[4:8] == bytes(4) and int.from_bytes(header[8:12], "little") == int(look.st_mtime) & 0xFFFFFFFF
    return _Held(path, look.st_mtime_ns, look.st_size, hasattr(module, "__path__"), code) if fits else None


def _place() -> str:
    return os.path.join(FOLDER, "__pycache__", f"lint.{sys.implementation.cache_tag}.bundle")


def _read() -> tuple[dict[str, _Held], dict[str, CodeType]] | None:
    try:
        with open(_place(), "rb") as stream:
            format, folder, held, texts = marshal.loads(stream.read())
        if (format, folder) != (_FORMAT, FOLDER):
            return None
        return {name: _Held(*parts) for name, parts in held.items()}, texts
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _write(held: dict[str, _Held], texts: dict[str, CodeType]) -> None:
    """Whole or not at all, as .pyc files are."""
    unfinished = f"{_place()}.{os.getpid()}"
    try:
        with open(unfinished, "wb") as out:
            out.write(marshal.dumps((_FORMAT, FOLDER, {name: tuple(each) for name, each in held.items()}, texts)))
        os.replace(unfinished, _place())
    except OSError:
        try:
            os.unlink(unfinished)
        except OSError:
            return
