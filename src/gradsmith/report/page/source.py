"""The user's source around a finding, and its repair as a diff."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gradsmith.findings import Finding
from gradsmith.report.escaping import PROSE, escaped
from gradsmith.report.place import shown_path
from gradsmith.source import edits, notebook
from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named

_AROUND = 4
_HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", re.M)


@dataclass(frozen=True)
class Line:
    number: int
    text: str
    marked: bool


def excerpt_of(finding: Finding) -> list[Line]:
    """Lines around the one of the finding; that one alone where its file is not here any more, or has changed."""
    if finding.line is None:
        return []
    text = _text_of(finding)
    if text is None:
        return [Line(finding.line, escaped(finding.snippet.rstrip(), PROSE), True)] if finding.snippet else []
    lines, last = _lines(text), finding.end_line or finding.line
    first, end = max(1, finding.line - _AROUND), min(len(lines), last + _AROUND)
    return [Line(n, escaped(lines[n - 1], "\t"), finding.line <= n <= last) for n in range(first, end + 1)]


def diff_of(finding: Finding) -> list[str]:
    """The repair as a unified diff, line by line; nothing where there is no machine edit."""
    text = _text_of(finding)
    if text is None or not finding.edits:
        return []
    # Only the lines around: a file with 10,000 findings would be compared with itself as often.
    starts = _starts(text)
    above = max(0, min(edit.line for edit in finding.edits) - 1 - _AROUND)
    below = max(edit.end_line for edit in finding.edits) + _AROUND
    piece = text[starts[min(above, len(starts) - 1)] : starts[below] if below < len(starts) else len(text)]
    moved = [replace(e, line=e.line - above, end_line=e.end_line - above) for e in finding.edits]
    name = shown_path(finding.path or "") if finding.cell is None else f"cell {finding.cell}"
    diff = edits.unified_diff(piece, edits.apply(piece, moved), name)
    diff = _HUNK.sub(lambda m: f"@@ -{int(m[1]) + above}{m[2]} +{int(m[3]) + above}{m[4]} @@", diff)
    return [escaped(line, "\t") for line in diff.split("\n")[:-1]]


@functools.lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return edits.split_lines(text)


@functools.lru_cache(maxsize=4)
def _starts(text: str) -> list[int]:
    return [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0, 0
    return found.st_mtime_ns, found.st_size


@functools.lru_cache(maxsize=64)
def _model(path: str, state: tuple[int, int]) -> FileModel | None:
    """A report of thousands of findings asks as often for the same file."""
    return file_named(path)


def file_at(path: str | None) -> FileModel | None:
    """The file as it is now; None where it is not here."""
    return _model(path, _state(path)) if path else None


@functools.lru_cache(maxsize=64)
def _cells(path: str, state: tuple[int, int]) -> Mapping[int, str]:
    try:
        return notebook.sources(Path(path).read_bytes())
    except (OSError, ValueError):
        return {}


def _cell(finding: Finding) -> int | None:
    """The cell of a notebook on disk, in which the lines of a finding are counted. What runs now has a path for each cell."""
    return finding.cell if finding.path is not None and finding.path.endswith(notebook.ENDING) else None


def _text_of(finding: Finding) -> str | None:
    """The file or cell, where it still says what the finding saw."""
    path, line, cell = finding.path, finding.line, _cell(finding)
    if path is None or line is None:
        return None
    if cell is not None:
        text = _cells(path, _state(path)).get(cell)
    else:
        file = file_at(path)
        text = file.text if file is not None else None
    lines = edits.split_lines(text) if text is not None else []
    if line > len(lines):
        return None
    same = not finding.snippet or finding.snippet.split("\n")[0].strip() in lines[line - 1]
    return text if same else None
