"""JSON, schema 1 (docs/schema/report-1.json): the Report as it is, with paths relative to the current folder where they can be."""

from __future__ import annotations

import json
from typing import Any

from gradsmith.findings import Report
from gradsmith.report.escaping import strict_unicode
from gradsmith.report.place import relative_path


def render(report: Report, *, color: bool = False) -> str:
    return json.dumps(strict_unicode(_relative(report.to_dict())), indent=2, allow_nan=False) + "\n"


def _relative(value: Any) -> Any:
    """The same with every `path` of a finding, a subject or a skipped file as people write it."""
    if isinstance(value, list):
        return [_relative(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {key: _relative(item) if key in _HOLDS_PATHS else item for key, item in value.items()}
    if isinstance(value.get("path"), str):
        shown["path"] = relative_path(value["path"])
    return shown


_HOLDS_PATHS = ("findings", "symptoms", "subjects", "skipped")
