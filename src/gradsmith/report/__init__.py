"""One renderer per file; this one only knows which there are."""

from __future__ import annotations

import importlib
from typing import Any

from gradsmith.findings import GradsmithError, Report
from gradsmith.nearest import nearest
from gradsmith.report.escaping import PROSE, presentable, without_commands

FORMATS = ("full", "concise", "json", "sarif", "github", "junit", "html")
_FOR_MACHINES = ("json", "sarif")  # JSON escapes by itself
_ENDINGS = {".json": "json", ".sarif": "sarif", ".xml": "junit", ".html": "html", ".htm": "html"}


def render(report: Report, format: str, *, color: bool = False, **layout: Any) -> str:
    """The report as text in one of `FORMATS`. `layout` (width, verbose) is for people, so only the full text knows it."""
    if format not in FORMATS:
        raise GradsmithError(f"no format is called {format!r}; {nearest(format, FORMATS)}")
    module = importlib.import_module(f"gradsmith.report.{format}_format")
    if format not in _FOR_MACHINES:
        report = presentable(report, "" if format == "concise" else PROSE)
    text: str = module.render(report, color=color, **(layout if format == "full" else {}))
    return without_commands(text) if format in ("full", "concise") else text


def format_for(path: str) -> str:
    """The format a file name asks for: .json, .sarif, .xml (JUnit), .html, anything else is the full text."""
    return next((format for ending, format in _ENDINGS.items() if path.endswith(ending)), "full")
