"""Tables in the documents that a benchmark wrote: what stands between two marks is replaced, nothing is copied by hand."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def shown(show: Callable[[str], T], file: str, page: str | None, name: str) -> T:
    """What `show(file)` returns; what it prints is printed, and put on the page between the marks of this name."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = show(file)
    print(said.getvalue(), end="")
    if page is not None:
        path = Path(page)
        path.write_text(put(path.read_text(encoding="utf-8"), name, said.getvalue()), encoding="utf-8")
    return found


def put(text: str, name: str, lines: str) -> str:
    """The text with these lines between its marks.

    >>> put("a\\n<!-- measured: ops -->\\nold\\n<!-- end -->\\nb", "ops", "new\\n")
    'a\\n<!-- measured: ops -->\\nnew\\n<!-- end -->\\nb'
    """
    start, end = f"<!-- measured: {name} -->\n", "<!-- end -->"
    before, found, rest = text.partition(start)
    if not found or end not in rest:
        raise ValueError(f"the page has no line {start.strip()!r} with an end behind it")
    return before + start + lines + end + rest.partition(end)[2]
