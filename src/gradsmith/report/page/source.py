"""The user's source around a finding, and its repair as a diff."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gradsmith.findings import Finding
from gradsmith.report.escaping import PROSE, escaped
from gradsmith.report.place import shown_path
from gradsmith.source import edits, notebook
from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named

_AROUND = 4


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
    lines, last = edits.split_lines(text), finding.end_line or finding.line
    first, end = max(1, finding.line - _AROUND), min(len(lines), last + _AROUND)
    return [Line(n, escaped(lines[n - 1], "\t"), finding.line <= n <= last) for n in range(first, end + 1)]


def diff_of(finding: Finding) -> list[str]:
    """The repair as a unified diff, line by line; nothing where there is no machine edit."""
    text = _text_of(finding)
    if text is None or not finding.edits:
        return []
    changed = edits.apply(text, finding.edits)
    name = shown_path(finding.path or "") if finding.cell is None else f"cell {finding.cell}"
    diff = edits.unified_diff(text, changed, name)
    return [escaped(line, "\t") for line in diff.split("\n")[:-1]]


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
