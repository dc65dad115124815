"""Jupyter notebooks as source: the code cells joined to one text, and the way back from its lines to the cells.

One text, because a class in one cell uses the imports of another. Magics and shell lines become `pass`; a cell that is
not Python (`%%bash`, or a syntax error) becomes empty lines, so that the others are still read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gradsmith.findings import Edit, Finding
from gradsmith.source.edits import apply

ENDING = ".ipynb"
_PYTHON_MAGICS = frozenset(("gradsmith", "time", "timeit", "capture", "prun", "python", "python3"))
_MAGIC = re.compile(r"^(\s*)([%!?].*|[\w.]+\?{1,2}|help\s[\w.]+)$")
_ASSIGNED = re.compile(r"^(\s*[\w.,\s\[\]]+=\s*)([%!].*)$")


class Cell(NamedTuple):
    """One code cell: its place in the notebook (from 1) and the line of the joined text before its first."""

    number: int
    offset: int
    lines: int


@dataclass
class Notebook:
    """A notebook's code as one text. `trouble` has a sentence for each cell that is left out."""

    text: str
    cells: list[Cell] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    def cell_at(self, line: int) -> Cell | None:
        """The cell that holds a line of the joined text."""
        return next((c for c in reversed(self.cells) if c.offset < line <= c.offset + c.lines), None)

    def placed(self, finding: Finding) -> Finding:
        """A finding of the joined text, as a finding of its cell."""
        cell = self.cell_at(finding.line or 0)
        symptoms = tuple(self.placed(s) for s in finding.symptoms)
        if cell is None:
            return replace(finding, symptoms=symptoms)
        inside = [_moved(e, -cell.offset) for e in finding.edits if self._within(e, cell)]
        edits = tuple(inside) if len(inside) == len(finding.edits) else ()
        return replace(
            finding,
            cell=cell.number,
            line=(finding.line or 0) - cell.offset,
            end_line=None if finding.end_line is None else finding.end_line - cell.offset,
            edits=edits,
            applicability=finding.applicability if edits else None,
            symptoms=symptoms,
        )

    @staticmethod
    def _within(edit: Edit, cell: Cell) -> bool:
        return cell.offset < edit.line <= edit.end_line <= cell.offset + cell.lines


def read(data: bytes) -> Notebook:
    """The code of a notebook; ValueError when these bytes are none.

    >>> read(b'{"cells": [{"cell_type": "code", "source": "x = 1"}], "nbformat": 4}').text
    'x = 1\\n'
    """
    cells = _cells(_loaded(data.decode("utf-8-sig")))
    notebook = Notebook("")
    lines: list[str] = []
    for number, cell in enumerate(cells, 1):
        if cell.get("cell_type") != "code":
            continue
        code = _python(_source(cell))
        try:
            ast.parse("\n".join(code) + "\n")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
            notebook.trouble.append(f"cell {number}: {getattr(error, 'msg', error)}{where}")
            code = [""] * len(code)
        notebook.cells.append(Cell(number, len(lines), len(code)))
        lines += code
    notebook.text = "\n".join([*lines, ""])
    return notebook


def sources(data: bytes) -> dict[int, str]:
    """What the user wrote in each code cell, by its number."""
    cells = _cells(_loaded(data.decode("utf-8-sig")))
    return {n: _source(cell) for n, cell in enumerate(cells, 1) if cell.get("cell_type") == "code"}


def edited(data: bytes, edits: Mapping[int, Sequence[Edit]]) -> bytes:
    """The notebook's bytes after edits by cell; everything else is written as it was found."""
    text = data.decode("utf-8-sig")
    content = _loaded(text)
    layout = next((kw for kw in _LAYOUTS if _dumped(content, kw) == text.rstrip("\n")), _LAYOUTS[0])
    cells = _cells(content)
    for number, changes in edits.items():
        cell = cells[number - 1]
        after = apply(_source(cell), changes)
        cell["source"] = after.splitlines(keepends=True) if isinstance(cell["source"], list) else after
    ending = text[len(text.rstrip("\n")) :]
    return (_dumped(content, layout) + ending).encode()


_LAYOUTS: tuple[dict[str, Any], ...] = tuple(
    {"indent": indent, "ensure_ascii": ascii} for indent in (1, 2, 4, None) for ascii in (False, True)
)


def _loaded(text: str) -> Any:
    import json  # most projects have no notebook

    return json.loads(text)


def _dumped(content: object, layout: dict[str, Any]) -> str:
    import json

    return json.dumps(content, **layout)


def _cells(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, dict):
        raise ValueError("not a notebook")
    cells = content.get("cells")
    if cells is None and isinstance(content.get("worksheets"), list):
        raise ValueError("a notebook of format 3; open and save it in Jupyter to convert it")
    if not isinstance(cells, list) or not all(isinstance(c, dict) for c in cells):
        raise ValueError("not a notebook")
    return cells


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(str(part) for part in source)
    return str(source)


def _python(source: str) -> list[str]:
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        words = lines[first][2:].split()
        if not words or words[0] not in _PYTHON_MAGICS:
            return [""] * len(lines)
        lines[first] = ""
    try:
        ast.parse(source)
        return lines  # no magics: a line that opens with % continues an expression
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _without_magics(lines)


def _without_magics(lines: Sequence[str]) -> list[str]:
    out: list[str] = []
    continues = False
    for line in lines:
        if continues:
            out.append("")
        elif magic := _MAGIC.match(line):
            out.append(f"{magic[1]}pass")
        elif assigned := _ASSIGNED.match(line):
            out.append(f"{assigned[1]}None")
        else:
            out.append(line)
            continue
        continues = line.rstrip().endswith("\\")
    return out


def _moved(edit: Edit, by: int) -> Edit:
    return replace(edit, line=edit.line + by, end_line=edit.end_line + by)
