"""Where a finding is, as people and editors write it."""

from __future__ import annotations

import os

from gradsmith.findings import Finding
from gradsmith.report.escaping import escaped


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
    """`file.py:12:5`, `notebook.ipynb:cell 3:12:5`, or the function's name where there is no file."""
    if finding.path is None:
        return finding.function or "<unknown>"
    parts = [shown_path(finding.path)]
    if finding.cell is not None:
        parts.append(f"cell {finding.cell}")
    if finding.line is not None:
        parts.append(str(finding.line))
        parts.append(str((finding.column or 0) + 1))
    return ":".join(parts)
