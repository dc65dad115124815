"""Functions defined in a notebook cell or at a prompt: their methods have source, even where the class has none."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path


def cell_text(path: str) -> str:
    """The text of the cell that was compiled under this name; empty for a file on disk."""
    if Path(path).is_file():
        return ""
    return "".join(linecache.getlines(path))


def cell_number(path: str) -> int | None:
    """The number in front of the cell, `In [3]`, where IPython runs and remembers it."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return None
    session = shell.get_ipython()
    known = getattr(getattr(session, "compile", None), "_filename_map", {})
    number = known.get(path)
    return number if isinstance(number, int) else None


def class_line(text: str, name: str) -> int | None:
    """Where `class name` stands in a cell; the last one wins, as it does when the cell runs."""
    found = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*class\s+{re.escape(name)}\b", line):
            found = number
    return found
