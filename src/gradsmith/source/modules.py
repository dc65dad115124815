"""In which file a name is defined that another file imports: by module, never by the bare name.

Files that promised nothing to any rule (an `__init__` that only passes names on) were not kept; they are read from disk. Where no
file can be found the answer is None: unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.source import imports, scan
from gradsmith.source.encoding import decoded

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

_HOPS = 5  # files that only pass the name on


class _Module(NamedTuple):
    path: str
    text: str
    imports: imports.Imports


def defined_in(file: FileModel, dotted: str, known: Mapping[str, FileModel]) -> str | None:
    """The path of the file that defines the last part of a dotted name, as it is imported in `file`.

    `known` are the files at hand, by path with forward slashes. Relative names begin with their dots.
    """
    here = _Module(_slashed(file.path), "", file.imports)
    return _followed(here, dotted, known, _HOPS)


def _followed(here: _Module, dotted: str, known: Mapping[str, FileModel], hops: int) -> str | None:
    module, _, name = dotted.rpartition(".")
    if not module.strip(".") and not module:
        return None
    if dotted.startswith(".") and not module.strip("."):
        module = "." * (len(dotted) - len(dotted.lstrip(".")))
    for path in _paths(here.path, module, known):
        found = _read(path, known)
        if found is None:
            continue
        if re.search(rf"^(?:class|def)[ \t]+{re.escape(name)}\b|^{re.escape(name)}[ \t]*=", found.text, re.M):
            return found.path
        onward = [found.imports.names[name]] if name in found.imports.names else []
        onward += [f"{star}.{name}" if not star.endswith(".") else star + name for star in found.imports.stars]
        for each in onward if hops else ():
            if (end := _followed(found, each, known, hops - 1)) is not None:
                return end
    return None


def _paths(importer: str, module: str, known: Mapping[str, FileModel]) -> Iterator[str]:
    """Where the module may stand: a file or a package, first among the files at hand."""
    rest = module.lstrip(".").replace(".", "/")
    level = len(module) - len(module.lstrip("."))
    if level:
        folder = importer
        for _ in range(level):
            folder = folder.rpartition("/")[0]
        start = f"{folder}/{rest}" if folder and rest else folder or rest
        yield from (path for path in (f"{start}.py", f"{start}/__init__.py"))
        return
    tails = (f"/{rest}.py", f"/{rest}/__init__.py")
    yield from (path for path in known if ("/" + path).endswith(tails))
    first = rest.partition("/")[0]
    folder = importer.rpartition("/")[0]
    while folder:
        above = folder.rpartition("/")[0]
        if folder.rpartition("/")[2] == first:
            yield from (f"{above}{tail}" if above else tail[1:] for tail in tails)
        yield from (f"{folder}{tail}" for tail in tails)
        folder = above


def _read(path: str, known: Mapping[str, FileModel]) -> _Module | None:
    if path in known:
        return _Module(path, known[path].text, known[path].imports)
    if not os.path.isfile(path):
        return None
    source = scan.read(scan.Unread(path))
    try:
        text = decoded(source.data) if isinstance(source, scan.SourceFile) else ""
    except (UnicodeDecodeError, LookupError, SyntaxError):
        return None
    return _Module(path, text, imports.read(text))


def _slashed(path: str) -> str:
    return path.replace("\\", "/")
