"""SARIF 2.1.0, as code scanning services read it: the rule table is the catalogue's, places are relative."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradsmith.catalog import Rule, families, rules
from gradsmith.findings import Edit, Finding, Report, Subject
from gradsmith.report.escaping import strict_unicode
from gradsmith.report.place import relative_path, shown_path
from gradsmith.report.rule_pages import CRAFT, as_markdown, help_uri

SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
_NOT_VERIFIED: dict[str, Any] = {
    "id": "not-verified",
    "name": "not-verified",
    "shortDescription": {"text": "A custom gradient could not be verified, and the reason why"},
    "help": {"text": "Give inputs that work, or declare what the gradient is meant to be; the message says which."},
    "helpUri": CRAFT,
    "defaultConfiguration": {"level": "note"},
}
_LEVEL = {"error": "error", "warning": "warning", "info": "note"}


def render(report: Report, *, color: bool = False) -> str:
    return json.dumps(strict_unicode(as_dict(report)), indent=2, allow_nan=False) + "\n"


def as_dict(report: Report) -> dict[str, Any]:
    """The report as a SARIF log with one run."""
    from gradsmith.about import VERSION

    table = list(rules().values())
    index = {rule.name: i for i, rule in enumerate(table)}
    driver = {
        "name": "gradsmith",
        "version": VERSION,
        "semanticVersion": VERSION,
        "rules": [*(_rule(rule) for rule in table), _NOT_VERIFIED],
    }
    seen: Counter[str] = Counter()
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notifications(report))}],
        "results": [
            *(_result(f, index, seen) for f in report.findings),
            *(_open(s, len(table), seen) for s in report.subjects if s.verdict == "unverified" and not s.known),
        ],
    }
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.section("What it finds") or rule.title},
        "help": {"text": rule.section("Why it matters") or rule.title, "markdown": as_markdown(rule)},
        "helpUri": help_uri(rule),
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {
            "tags": [rule.family, families()[rule.family][1]],
            "fixable": rule.fixable,
            "state": rule.state,
        },
    }


def _open(subject: Subject, index: int, seen: Counter[str]) -> dict[str, Any]:
    """A subject that is neither right nor wrong for all that is known: a note, so that nobody takes silence for a pass."""
    result: dict[str, Any] = {
        "ruleId": _NOT_VERIFIED["id"],
        "ruleIndex": index,
        "level": "note",
        "message": {"text": f"{subject.name} is not verified: {subject.reason or 'no reason is known'}"},
    }
    if subject.path is not None:
        place: dict[str, Any] = {"artifactLocation": _artifact(subject.path)}
        if subject.line is not None:
            place["region"] = {"startLine": subject.line}
        result["locations"] = [{"physicalLocation": place, "logicalLocations": [{"fullyQualifiedName": subject.name}]}]
    key = f"not-verified {shown_path(subject.path or '')} {subject.name}"
    seen[key] += 1
    result["partialFingerprints"] = {"gradsmith/v1": f"{key}:{seen[key]}"}
    return result


def _result(finding: Finding, index: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    seen[finding.fingerprint] += 1
    text = finding.message + (f" {finding.advice}" if finding.advice else "")
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVEL[finding.severity or "info"],
        "message": {"text": text},
        # Two findings of one rule on equal lines share a fingerprint; the count keeps them apart.
        "partialFingerprints": {"gradsmith/v1": f"{finding.fingerprint}:{seen[finding.fingerprint]}"},
        "properties": {
            "rule": finding.rule,
            "function": finding.function,
            "cell": finding.cell,
            "lenses": list(finding.lenses),
        },
    }
    if finding.rule in index:
        result["ruleIndex"] = index[finding.rule]
    if finding.path is not None:
        location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(finding.path)}}
        # A line of a notebook's cell is no line of the file that holds the notebook.
        if finding.line is not None and finding.cell is None:
            location["physicalLocation"]["region"] = _region(finding)
        if finding.function:
            location["logicalLocations"] = [{"fullyQualifiedName": finding.function}]
        result["locations"] = [location]
        if finding.edits and finding.cell is None:
            result["fixes"] = [_fix(finding.path, finding.edits, finding.advice or finding.message)]
    return result


def _artifact(path: str) -> dict[str, str]:
    shown = relative_path(path).replace("\\", "/")
    if Path(shown).is_absolute():
        return {"uri": Path(shown).as_uri()}
    return {"uri": quote(os.fsencode(shown)), "uriBaseId": "SRCROOT"}


def _region(finding: Finding) -> dict[str, Any]:
    line = finding.line or 1
    region: dict[str, Any] = {"startLine": line, "startColumn": (finding.column or 0) + 1}
    if finding.end_line is not None and finding.end_column is not None:
        region |= {"endLine": finding.end_line, "endColumn": finding.end_column + 1}
    if finding.snippet:
        region["snippet"] = {"text": finding.snippet}
    return region


def _fix(path: str, edits: Iterable[Edit], words: str) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": {
                "startLine": e.line,
                "startColumn": e.column + 1,
                "endLine": e.end_line,
                "endColumn": e.end_column + 1,
            },
            "insertedContent": {"text": e.replacement},
        }
        for e in edits
    ]
    return {
        "description": {"text": words},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": replacements}],
    }


def _notifications(report: Report) -> Iterable[dict[str, Any]]:
    for skipped in report.skipped:
        yield {
            "level": "warning",
            "message": {"text": f"skipped: {skipped.reason}"},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(skipped.path)}}],
        }
    for note in report.notes:
        yield {"level": "note", "message": {"text": note}}
