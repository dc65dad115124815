"""What Python calls a class: `Outer.Inner`, `build.<locals>.Inner`. Found by pattern; most files are never parsed whole."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from gradsmith.source.file import FileModel

_OUTER = re.compile(r"([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)")


def of_class(file: FileModel, node: ast.ClassDef) -> str:
    """The `__qualname__` of a class of this file."""
    header = next((header for header in file.headers if header.line == node.lineno), None)
    parts = [node.name]
    if header is not None and header.indent:
        for outer in _around(file.text, header.offset, len(header.indent.expandtabs())):
            parts += ["<locals>", outer[3]] if outer[2] == "def" else [outer[3]]
    return ".".join(reversed(parts))


def _around(text: str, end: int, indent: int) -> Iterator[re.Match[str]]:
    """The definitions around a place, inside out: indented less than it, and than everything in between."""
    last = {word: text.rfind(word, 0, end) for word in ("def ", "class ")}
    while indent > 0:
        word, at = max(last.items(), key=itemgetter(1))
        if at < 0:
            return
        last[word] = text.rfind(word, 0, at)
        start = text.rfind("\n", 0, at) + 1
        outer = _OUTER.match(text, start)
        width = len(outer[1].expandtabs()) if outer is not None else indent
        if outer is None or outer.start(2) != at or width >= indent:
            continue
        # Another statement as far out ends the definition; comments and closing brackets do not.
        if _at_most(width).search(text, outer.end(), end) is None:
            yield outer
            indent = width


@functools.lru_cache(maxsize=64)
def _at_most(width: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]{{0,{width}}}[^\s#)\]}}]")
