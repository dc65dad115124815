"""Comments that hide what a run showed, as they hide what the source shows.

A comment hides the finding, not what it means: a subject with a hidden error is not verified, but known. Never imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradsmith import catalog
from gradsmith.findings import Finding, Report
from gradsmith.source.ignoring import head_of, hiding
from gradsmith.source.loaded import file_named

IGNORED = "ignored"  # in what was measured of a subject: the comments that hid something, as [file, line]


@dataclass(frozen=True)
class ShownFindings:
    """What is shown of some findings, what comments hide, and where those comments stand."""

    shown: list[Finding] = field(default_factory=list)
    hidden: list[Finding] = field(default_factory=list)
    comments: list[list[Any]] = field(default_factory=list)


def seen(findings: Sequence[Finding], path: str | None, definition: Any) -> ShownFindings:
    """The findings on a subject, parted by what comments ignore: on their lines, or at the head of its definition in `path`."""
    found = ShownFindings()
    file = file_named(path) if path is not None else None
    head = head_of(definition) if file is not None else range(0)
    for finding in findings:
        stands_in = file_named(finding.path) if finding.path is not None and finding.path != path else file
        comments = hiding(finding, stands_in, file or stands_in, head) if stands_in is not None else []
        (found.hidden if comments else found.shown).append(finding)
        places = [(path if comment.line in head else finding.path, comment.line) for comment in comments]
        found.comments.extend([where, line] for where, line in places if [where, line] not in found.comments)
    return found


def without_used(report: Report) -> Report:
    """The report without remarks on comments that hide nothing in the source, but hid what a run showed."""
    used = {(_real(path), line) for s in report.subjects for path, line in s.measured.get(IGNORED, ())}
    if not used:
        return report
    kept = [
        f
        for f in report.findings
        if not (catalog.find(f.rule).after_others and (_real(f.path), f.line) in used and f.cell is None)
    ]
    return replace(report, findings=kept)


def _real(path: str | None) -> str:
    return os.path.realpath(path or "")
