"""Machine edits of source text: made from syntax nodes, applied without touching anything else, shown as a diff."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradsmith.findings import Edit

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

_NEWLINE = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines of `text` as Python's parser counts them (form feeds and \\x85 do not end a line)."""
    return _NEWLINE.split(text) if "\r" in text else text.split("\n")


def replace(file: FileModel, node: ast.expr | ast.stmt, text: str) -> Edit:
    """Write `text` where `node` stands."""
    place = file.place(node)
    return Edit(place.line, place.column, place.end_line, place.end_column, text)


def insert_before(file: FileModel, statement: ast.stmt, text: str) -> Edit | None:
    """A new line with `text` before `statement`, at its indentation; None where it shares its line with other code."""
    line = statement.lineno
    decorators = getattr(statement, "decorator_list", None)
    if decorators:
        line = min(line, decorators[0].lineno)
    indent = indentation(file, line)
    if indent is None or (not decorators and file.place(statement).column != len(indent)):
        return None
    return Edit(line, 0, line, 0, f"{indent}{text}{file.newline}")


def insert_after(file: FileModel, statement: ast.stmt, text: str) -> Edit | None:
    """A new line with `text` after `statement`, at its indentation; None where that is not one statement per line."""
    indent = indentation(file, statement.lineno)
    end_line = statement.end_lineno or statement.lineno
    rest = file.lines[end_line - 1][file.place(statement).end_column :].strip()
    if indent is None or file.place(statement).column != len(indent) or (rest and not rest.startswith("#")):
        return None
    return Edit(
        end_line,
        len(file.lines[end_line - 1]),
        end_line,
        len(file.lines[end_line - 1]),
        f"{file.newline}{indent}{text}",
    )


def delete_lines(file: FileModel, statement: ast.stmt) -> Edit | None:
    """Remove `statement` with its line; None where it shares a line with other code or is all its block has."""
    indent = indentation(file, statement.lineno)
    end_line = statement.end_lineno or statement.lineno
    rest = file.lines[end_line - 1][file.place(statement).end_column :].strip()
    parent = file.parents.get(statement)
    blocks = [b for b in (getattr(parent, f, None) for f in ("body", "orelse", "finalbody")) if isinstance(b, list)]
    alone = any(len(block) == 1 and block[0] is statement for block in blocks)
    if indent is None or alone or (rest and not rest.startswith("#")) or end_line >= len(file.lines):
        return None
    if file.place(statement).column != len(indent):
        return None
    return Edit(statement.lineno, 0, end_line + 1, 0, "")


def indentation(file: FileModel, line: int) -> str | None:
    """The white space that opens a line; None when the line has nothing else."""
    text = file.lines[line - 1]
    stripped = text.lstrip(" \t")
    return text[: len(text) - len(stripped)] if stripped else None


def apply(text: str, edits: Iterable[Edit]) -> str:
    """`text` after the edits. Of two that overlap, only the first is applied; run again for the other.

    >>> apply("a = b\\n", [Edit(1, 4, 1, 5, "c")])
    'a = c\\n'
    """
    starts = [0, *(m.end() for m in _NEWLINE.finditer(text))]
    spans: list[tuple[int, int, str]] = []
    for edit in dict.fromkeys(edits):
        if not (1 <= edit.line <= edit.end_line <= len(starts)):
            continue
        begin, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        if begin <= end <= len(text):
            spans.append((begin, end, edit.replacement))
    spans.sort(key=lambda span: (span[0], span[1]))
    out: list[str] = []
    position = 0
    for begin, end, replacement in spans:
        if begin < position:
            continue
        out += [text[position:begin], replacement]
        position = end
    return "".join([*out, text[position:]])


def unified_diff(before: str, after: str, path: str) -> str:
    """What `--diff` prints: empty when nothing changed."""
    import difflib

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"))
