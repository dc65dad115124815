"""The user's source around a finding, and its repair as a diff."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from gradsmith.findings import Finding
from gradsmith.report.escaping import PROSE, escaped
from gradsmith.report.place import shown_path
from gradsmith.source import edits
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
    file = _file(finding)
    if file is None:
        return [Line(finding.line, escaped(finding.snippet.rstrip(), PROSE), True)] if finding.snippet else []
    last = finding.end_line or finding.line
    first, end = max(1, finding.line - _AROUND), min(len(file.lines), last + _AROUND)
    return [Line(n, escaped(file.lines[n - 1], "\t"), finding.line <= n <= last) for n in range(first, end + 1)]


def diff_of(finding: Finding) -> list[str]:
    """The repair as a unified diff, line by line; nothing where there is no machine edit."""
    file = _file(finding)
    if file is None or not finding.edits:
        return []
    changed = edits.apply(file.text, finding.edits)
    diff = edits.unified_diff(file.text, changed, shown_path(file.path))
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


def _file(finding: Finding) -> FileModel | None:
    """The file, where it still says what the finding saw. Notebooks have cells, and their lines are counted in them."""
    file = file_at(finding.path) if finding.cell is None else None
    if file is None or finding.line is None or finding.line > len(file.lines):
        return None
    same = not finding.snippet or finding.snippet.split("\n")[0].strip() in file.lines[finding.line - 1]
    return file if same else None
