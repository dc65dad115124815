"""Findings, verdicts, edits and Functions as the protocol has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lsprotocol import types

from gradsmith.findings import Finding
from gradsmith.report.verdicts import word
from gradsmith.server.documents import OpenDocument
from gradsmith.server.positions import TextLines

CHECK, DERIVE = "gradsmith.check", "gradsmith.derive"
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def diagnostics(source: OpenDocument) -> dict[str, list[types.Diagnostic]]:
    """What is to be shown in each document of a source; an empty list takes away what was shown before."""
    shown: dict[str, list[types.Diagnostic]] = {uri: [] for uri in (*source.addresses(), *source.published)}
    lines = {uri: source.lines(uri) for uri in source.addresses()}
    for finding in source.findings:
        uri = source.address(finding.cell)
        shown[uri].append(_diagnostic(finding, source, lines))
    for reason in source.skipped:
        shown[source.address(1)].append(_skipped(reason, lines[source.address(1)]))
    for name, checked in source.checked.items():
        if checked.verdict == "unverified":
            (stands,) = (f for f in source.functions if f["name"] == name)
            uri = source.address(stands["cell"])
            where = _range(lines[uri], stands["line"])
            text = f"{name} is not verified: {checked.reason}"
            shown[uri].append(_plain(where, text, types.DiagnosticSeverity.Information))
    return shown


def range_of(finding: Finding, lines: TextLines) -> types.Range:
    """Where a finding stands; the rest of its line, where it does not say where it ends."""
    line, column = finding.line or 1, finding.column or 0
    if finding.end_line is None or finding.end_column is None:
        return _range(lines, line, column)
    start, end = lines.place(line, column), lines.place(finding.end_line, finding.end_column)
    return types.Range(types.Position(*start), types.Position(*end))


def text_edits(edits: Iterable[Mapping[str, Any]], lines: TextLines) -> list[types.TextEdit]:
    return [
        types.TextEdit(
            types.Range(
                types.Position(*lines.place(edit["line"], edit["column"])),
                types.Position(*lines.place(edit["end_line"], edit["end_column"])),
            ),
            edit["replacement"],
        )
        for edit in edits
    ]


def workspace_edit(source: OpenDocument, edits: Sequence[Mapping[str, Any]]) -> types.WorkspaceEdit:
    """Edits of a file or of cells, for the versions that are open now: an editor refuses them for others."""
    changed = []
    for cell in dict.fromkeys(edit["cell"] for edit in edits):
        uri = source.address(cell)
        version = source.documents.get_text_document(uri).version
        made = text_edits([e for e in edits if e["cell"] == cell], source.lines(uri))
        changed.append(types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), made))
    return types.WorkspaceEdit(document_changes=changed)


def lenses(source: OpenDocument, uri: str) -> list[types.CodeLens]:
    """Above each Function: what its last check said, or that it can be checked; and that backward can be derived."""
    found = []
    for function in source.functions:
        if source.address(function["cell"]) != uri:
            continue
        where = _range(source.lines(uri), function["line"])
        checked = source.checked.get(function["name"])
        title = f"check gradient ({word(checked.verdict)})" if checked is not None else "check gradient"
        arguments: list[Any] = [source.uri, function["name"]]
        found.append(types.CodeLens(where, types.Command(title, CHECK, arguments=arguments)))
        found.append(types.CodeLens(where, types.Command("derive backward", DERIVE, arguments=arguments)))
    return found


def _range(lines: TextLines, line: int, column: int = 0) -> types.Range:
    """From a column, or the first letter behind it, to the end of the line."""
    text = lines.line(line - 1)
    column = max(column, len(text) - len(text.lstrip()))
    start, end = lines.place(line, column), lines.place(line, len(text.rstrip()))
    return types.Range(types.Position(*start), types.Position(*end))


def _diagnostic(finding: Finding, source: OpenDocument, lines: Mapping[str, TextLines]) -> types.Diagnostic:
    message = finding.message if not finding.advice else f"{finding.message}\n{finding.advice}"
    related = [
        types.DiagnosticRelatedInformation(types.Location(uri, range_of(symptom, lines[uri])), symptom.message)
        for symptom in finding.symptoms
        if symptom.line is not None and (uri := source.address(symptom.cell)) in lines
    ]
    return types.Diagnostic(
        range=range_of(finding, lines[source.address(finding.cell)]),
        severity=_SEVERITY[finding.severity or "info"],
        code=finding.rule,
        source="gradsmith",
        message=message,
        related_information=related or None,
        data={"fingerprint": finding.fingerprint},
    )


def _skipped(reason: str, lines: TextLines) -> types.Diagnostic:
    """Why nothing is said about a text: while somebody types, mostly that it is not Python at the moment."""
    where = _range(lines, 1)
    return _plain(where, f"Not linted: {reason}", types.DiagnosticSeverity.Information)


def _plain(where: types.Range, message: str, severity: types.DiagnosticSeverity) -> types.Diagnostic:
    return types.Diagnostic(range=where, severity=severity, source="gradsmith", message=message)
