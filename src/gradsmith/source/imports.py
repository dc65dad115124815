"""What the names of a file stand for: import statements, read without parsing the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_IMPORT = re.compile(
    r"[ \t]*(from[ \t]+[.\w]+[ \t]+import[ \t]+(?:\([^)]*\)|(?:[^\n;#(\\]|\\\n)+)|import[ \t]+[\w., \t]+)"
)


@dataclass
class Imports:
    """Local name -> dotted name, and the modules imported with a star."""

    names: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

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
    statements = list(_statements(text))
    try:
        _collect(ast.parse("\n".join(statements)), found)
    except (SyntaxError, ValueError):
        for statement in statements:
            try:
                _collect(ast.parse(statement), found)
            except (SyntaxError, ValueError):
                continue
    return found


def _statements(text: str) -> Iterator[str]:
    # Looking for the word first is ten times quicker than trying the pattern at every line.
    at, done = text.find("import"), -1
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        match = _IMPORT.match(text, start) if start > done else None
        if match:
            done = start
            yield match[1].replace("\\\n", " ")
        at = text.find("import", at + 6)


def _collect(tree: ast.Module, found: Imports) -> None:
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    found.names.setdefault(alias.asname, alias.name)
                else:
                    first = alias.name.partition(".")[0]
                    found.names.setdefault(first, first)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    found.stars.append(module)
                else:
                    separator = "" if module.endswith(".") else "."
                    found.names.setdefault(alias.asname or alias.name, f"{module}{separator}{alias.name}")
