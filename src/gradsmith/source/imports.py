"""What the names of a file stand for: import statements, read without parsing the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_IMPORT = re.compile(
    r"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|(?:[^\n;#(\\]|\\\n)+)|import[ \t]+([\w., \t]+))"
)
_COMMENT = re.compile(r"#[^\n]*")


@dataclass
class Imports:
    """Local name -> dotted name, and the modules imported with a star."""

    names: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)  # of `import a.b`, a.b, of which only `a` is a name

    def module(self, name: str) -> bool:
        """Whether the top-level module, or anything of it, is imported."""
        return any(each.partition(".")[0] == name for each in (*self.names.values(), *self.stars))

    def dotted(self, text: str) -> str:
        """`F.relu` -> `torch.nn.functional.relu`; text whose first name is no import stays as it is."""
        first, dot, rest = text.partition(".")
        return self.names.get(first, first) + dot + rest


def read(text: str) -> Imports:
    """
    >>> read("from torch.autograd import Function as F").names
    {'F': 'torch.autograd.Function'}
    """
    found = Imports()
    for match in _statements(text):
        if match[3]:
            _modules(match[3], found)
        else:
            _members(match[1], match[2].replace("\\\n", " "), found)
    return found


def file_imports(path: str | Path, module: str) -> bool:
    """Whether a source file imports the top-level module, or anything of it, anywhere; False where it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    return module.encode() in data and read(data.decode("utf-8", "replace")).module(module)


def _statements(text: str) -> Iterator[re.Match[str]]:
    # Looking for the word first is ten times quicker than trying the pattern at every line.
    at, done = text.find("import"), -1
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        match = _IMPORT.match(text, start) if start > done else None
        if match:
            done = start
            yield match
        at = text.find("import", at + 6)


def _modules(listed: str, found: Imports) -> None:
    """`torch.nn as nn, os.path`."""
    for name, alias in _aliases(listed):
        first = name.partition(".")[0]
        found.modules.append(name)
        found.names.setdefault(alias or first, name if alias else first)


def _members(module: str, listed: str, found: Imports) -> None:
    """`Function as F, Variable`, or a star."""
    separator = "" if module.endswith(".") else "."
    for name, alias in _aliases(listed):
        if name == "*":
            found.stars.append(module)
        else:
            found.names.setdefault(alias or name, f"{module}{separator}{name}")


def _aliases(listed: str) -> list[tuple[str, str]]:
    """Each name, and what it is called here where that differs; nothing where this is prose and no import.

    (Parsing them as Python takes twice as long.)
    """
    if "#" in listed:
        listed = _COMMENT.sub("", listed)
    found = []
    for part in listed.strip("() \t\r\n").removesuffix(",").split(","):
        name, *alias = part.split() or [""]
        if name != "*" and not all(map(str.isidentifier, name.split("."))):
            return []
        if alias and (len(alias) != 2 or alias[0] != "as" or not alias[1].isidentifier()):
            return []
        found.append((name, alias[1] if alias else ""))
    return found
