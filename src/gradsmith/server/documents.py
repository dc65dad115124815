"""What is open in the editor: files, and notebooks with their cells, each with what is known about it.

Loaded while an editor waits for the first answer, so it knows nothing of `gradsmith.source`: the linter has it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument, Workspace

from gradsmith.findings import Finding, Report
from gradsmith.server.positions import ProtocolPlace, TextLines

_NOTEBOOK = ".ipynb"


class Document(TextDocument):
    """A text that changes as the protocol says, also in files with form feeds, and behind wide characters."""

    def _apply_incremental_change(self, change: types.TextDocumentContentChangePartial) -> None:
        start, end = change.range.start, change.range.end
        text = TextLines(self.source, encoding_of(self.position_codec.encoding))
        first, last = ProtocolPlace(start.line, start.character), ProtocolPlace(end.line, end.character)
        self._source = text.replaced(first, last, change.text)


class Documents(Workspace):
    """pygls' own store, of `Document`s."""

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return Document(
            doc_uri,
            source=source,
            version=version,
            language_id=language_id,
            sync_kind=self._sync_kind,
            position_codec=self._position_codec,
        )


def encoding_of(chosen: types.PositionEncodingKind | str | None) -> str:
    """`utf-16`, unless something else was agreed on."""
    return str(getattr(chosen, "value", chosen) or "utf-16")


@dataclass
class Checked:
    """What a check said of a Function, where the Function stood then, and its text."""

    stood: dict[str, Any]
    verdict: str
    reason: str
    findings: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        return {**self.stood, "findings": self.findings}


@dataclass
class OpenDocument:
    """An open file, or an open notebook: what lint reads as one."""

    uri: str
    path: str
    documents: Documents
    cells: list[str] | None = None  # addresses of a notebook's cells, of every kind, in their order
    findings: list[Finding] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    functions: list[dict[str, Any]] = field(default_factory=list)
    checked: dict[str, Checked] = field(default_factory=dict)
    published: set[str] = field(default_factory=set)  # addresses that have diagnostics
    dirty: bool = True
    linting: asyncio.Future[None] | None = None

    @property
    def is_python(self) -> bool:
        return self.cells is not None or is_python(self.documents.get_text_document(self.uri))

    def text(self) -> str:
        """As lint reads it."""
        if self.cells is None:
            return self.documents.get_text_document(self.uri).source
        return as_notebook([self.code_of(cell) for cell in self.cells])

    def code_of(self, cell: str) -> str | None:
        """The text of a cell; None where it is not Python."""
        document = self.documents.text_documents.get(unquote(cell))  # so pygls keeps them: `...#W0sZmlsZQ%3D%3D`
        known = self.documents.get_notebook_document(notebook_uri=self.uri)
        kinds = {one.document: one.kind for one in known.cells} if known is not None else {}
        if document is None or kinds.get(cell) != types.NotebookCellKind.Code or not is_python(document):
            return None
        return str(document.source)

    def address(self, cell: int | None) -> str:
        """The document that a finding stands in."""
        return self.uri if cell is None or self.cells is None else self.cells[min(cell, len(self.cells)) - 1]

    def lines(self, uri: str) -> TextLines:
        codec = self.documents.position_codec
        return TextLines(self.documents.get_text_document(uri).source, encoding_of(codec.encoding))

    def number(self, uri: str) -> int | None:
        """The number of a cell (from 1); None in a file."""
        return self.cells.index(uri) + 1 if self.cells is not None and uri in self.cells else None

    def addresses(self) -> list[str]:
        return [self.uri] if self.cells is None else list(self.cells)

    def take(self, answer: dict[str, Any]) -> None:
        """What the linter said."""
        told = {"findings": answer["findings"], "subjects": (), "skipped": ()}
        self.findings = Report.from_dict(told).findings
        self.skipped, self.functions = answer["skipped"], answer["functions"]
        self.checked = {name: self.checked[name] for name in answer["kept"] if name in self.checked}

    def unsaved(self) -> str | None:
        """Why what is on disk cannot be run in place of what is open, in a sentence; None where both are the same."""
        from gradsmith.source import notebook
        from gradsmith.source.encoding import decoded

        name = os.path.basename(self.path)
        try:
            with open(self.path, "rb") as stream:
                data = stream.read()
            if self.cells is None:
                same = TextLines(decoded(data)).text.splitlines() == self.text().splitlines()
            else:
                here = {n: c for n, cell in enumerate(self.cells, 1) if (c := self.code_of(cell)) is not None}
                there = notebook.sources(data)
                same = all(there.get(n, "").splitlines() == code.splitlines() for n, code in here.items())
        except (OSError, ValueError, SyntaxError, LookupError):
            return f"Save {name} first: gradsmith runs the file on disk, and there is none that it can read."
        return (
            None if same else f"Save {name} first: gradsmith runs the file on disk, which is different from this text."
        )


def is_python(document: TextDocument) -> bool:
    ending = os.path.splitext(document.path)[1]
    return document.language_id == "python" or (not document.language_id and ending in (".py", ".pyi"))


def source_of(sources: dict[str, OpenDocument], uri: str) -> OpenDocument | None:
    """The source that a document, or a cell, belongs to."""
    return sources.get(uri) or next((s for s in _notebooks(sources) if uri in (s.cells or ())), None)


def _notebooks(sources: dict[str, OpenDocument]) -> Iterator[OpenDocument]:
    return (source for source in sources.values() if source.cells is not None)


def path_of(uri: str, *, is_notebook: bool = False) -> str:
    """Where it is on disk; a name for what was never saved."""
    path = to_fs_path(uri) or f"untitled{_NOTEBOOK if is_notebook else '.py'}"
    return path if not is_notebook or path.endswith(_NOTEBOOK) else f"{path}{_NOTEBOOK}"


def as_notebook(cells: Sequence[str | None]) -> str:
    """The cells of an editor as the text of a notebook file; None stands for one that is not Python.

    >>> as_notebook([None, "x = 1"])[:50]
    '{"cells": [{"cell_type": "raw", "source": ""}, {"c'
    """
    kinds = [{"cell_type": "raw" if code is None else "code", "source": code or ""} for code in cells]
    return json.dumps({"cells": kinds, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
