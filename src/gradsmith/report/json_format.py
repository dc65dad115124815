"""Everything in the report, as JSON (schema 1)."""

from __future__ import annotations

import json

from gradsmith.findings import Report
from gradsmith.report.escaping import strict_unicode


def render(report: Report, *, color: bool = False) -> str:
    return json.dumps(strict_unicode(report.to_dict()), indent=2, allow_nan=False) + "\n"
