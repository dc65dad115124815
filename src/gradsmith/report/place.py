"""Where a finding is, as people and editors write it."""

from __future__ import annotations

import os

from gradsmith.cells import cell_number
from gradsmith.findings import Finding
from gradsmith.report.escaping import escaped

_NOTEBOOK = ".ipynb"


def shown_path(path: str) -> str:
    """Relative to the current folder where that is shorter, with forward slashes; fit to be printed."""
    return escaped(relative_path(path))


def relative_path(path: str) -> str:
    """The same as it is, for those who open it."""
    try:
        relative = os.path.relpath(os.path.realpath(path))
    except (ValueError, OSError):
        return path
    return path if relative.split(os.sep)[0] == os.pardir else relative.replace(os.sep, "/")


def place(finding: Finding) -> str:
    """`file.py:12:5`, `notebook.ipynb:cell 3:12:5`, `cell 3, line 12` of a running one; the function's name without a file."""
    if finding.path is None:
        return finding.function or "<unknown>"
    is_file = finding.line is None or finding.path.endswith(_NOTEBOOK)
    if not is_file and (words := _in_session(finding.path, finding.line or 0, finding.cell)):
        return words
    parts = [shown_path(finding.path)]
    if finding.cell is not None:
        parts.append(f"cell {finding.cell}")
    if finding.line is not None:
        parts.append(str(finding.line))
        parts.append(str((finding.column or 0) + 1))
    return ":".join(parts)


def spot(path: str, line: int | None, cell: int | None = None) -> str:
    """The same for people, without a column: `ops.py:12`, `book.ipynb, cell 3, line 12`, `cell 3, line 12`."""
    if line is None:
        return shown_path(path)
    if path.endswith(_NOTEBOOK) and cell is not None:
        return f"{shown_path(path)}, cell {cell}, line {line}"
    return _in_session(path, line, cell) or f"{shown_path(path)}:{line}"


def brief(path: str, line: int) -> str:
    """`spot`, with the name of the file only: for tables."""
    return _in_session(path, line, None) or f"{os.path.basename(path)}:{line}"


def _in_session(path: str, line: int, cell: int | None) -> str:
    """`cell 3, line 12` of the notebook that runs; empty for a file."""
    cell = cell_number(path) if cell is None else cell
    return f"cell {cell}, line {line}" if cell is not None else ""
