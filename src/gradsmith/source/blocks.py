"""Where the statements at the top of a file begin and end, and the functions around a line: by indentation, without parsing.

Lines are given by their index, from 0, unless a parameter is called `line`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def start(lines: Sequence[str], index: int) -> int:
    """The first line of the top-level statement that holds a line; its decorators belong to it."""
    index = _statement(lines, index)
    while index > 0 and lines[index - 1].startswith(("@", ")")):
        above = _statement(lines, index - 1)
        if not lines[above].startswith("@"):
            break
        index = above
    return index


def body(lines: Sequence[str], start: int) -> int:
    """The line after the decorators.

    >>> body(["@one(", "    1,", ")", "@two", "def f():", "    return 2"], 0)
    4
    """
    while lines[start].startswith("@") and (after := _after(lines, start)) < len(lines):
        start = after
    return start


def end(lines: Sequence[str], start: int) -> int:
    """The line after the top-level statement that starts here."""
    return _after(lines, body(lines, start))


def _statement(lines: Sequence[str], index: int) -> int:
    while index > 0 and _goes_on(lines[index]):
        index -= 1
    return index


def _after(lines: Sequence[str], start: int) -> int:
    index = start + 1
    while index < len(lines) and _goes_on(lines[index]):
        index += 1
    return index


def _goes_on(line: str) -> bool:
    """Does a line belong to what stands above it? (A decorator counts as a statement, its brackets included.)"""
    return not line or line[0] in " \t#)]}" or not line.strip()


def functions_around(lines: Sequence[str], line: int) -> Iterator[tuple[int, int]]:
    """Index and indentation of each `def` around a line, from the inside out."""
    width = _indentation(lines[line - 1])
    deeper = " " * width
    for index in range(line - 2, -1, -1):
        if width == 0:
            return
        text = lines[index]
        if text.startswith(deeper):  # most lines
            continue
        stripped = text.lstrip()
        indent = len(text) - len(stripped)
        if not stripped or indent >= width or stripped[0] in "#)]}":
            continue
        width, deeper = indent, " " * indent
        if stripped.startswith(("def ", "async def ")):
            yield index, indent


def end_of_function(lines: Sequence[str], start: int, indent: int) -> int:
    """The line after the function whose `def` stands here, this far in."""
    for index in range(start + 1, len(lines)):
        stripped = lines[index].lstrip()
        if stripped and _indentation(lines[index]) <= indent and stripped[0] not in "#)]}":
            return index
    return len(lines)


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())
