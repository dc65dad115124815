"""One text as it stands in an editor: the findings of lint, joined with what a check found in it, and its Functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradsmith.baseline import Baseline
from gradsmith.config import Config, load
from gradsmith.findings import Edit, Finding, GradsmithError, Report
from gradsmith.folding import fold, merge
from gradsmith.linting import rules_for
from gradsmith.linting.run import Run
from gradsmith.report.escaping import presentable
from gradsmith.source import FileModel, FunctionModel, notebook, scan
from gradsmith.source.declared import lines_of
from gradsmith.source.encoding import encoded


def linted(path: str, text: str, checked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Findings, Functions, and the names of those subjects whose checks still hold, as JSON.

    `checked` is what `standing` gave, with the findings of a check: they hold as long as the class is as it was.
    """
    config, trouble = configured(path)
    if config.excluded is not None and config.excluded(path):
        return {"findings": [], "skipped": [], "functions": [], "kept": [], "trouble": trouble}
    run = Run(rules_for((), (), False, config), config)
    report = run.report([scan.SourceFile(path, encoded(text), named=True)])
    book = run.notebooks.get(path)
    files = [file for file in run.words if file not in run.unparsed]
    functions = {f.qualname: f for file in files for f in file.functions if f.forward is not None}
    now = {name: standing(function, book) for name, function in functions.items()}
    kept = [old for old in checked if old["name"] in now and now[old["name"]]["text"] == old["text"]]
    again = [finding for old in kept for finding in _moved(old, now[old["name"]])]
    report = replace(report, findings=fold(merge([*report.findings, *again])))
    try:
        report = Baseline.read(config.baseline).without_known(report) if config.baseline else report
    except GradsmithError as error:
        trouble = str(error)
    report = presentable(report)
    return {
        "findings": [finding.to_dict() for finding in report.findings],
        "skipped": [skipped.reason for skipped in report.skipped],
        "functions": list(now.values()),
        "kept": [old["name"] for old in kept],
        "trouble": trouble,
    }


def configured(path: str) -> tuple[Config, str]:
    """What the project of a file decided; where its pyproject.toml is wrong, the defaults and a sentence."""
    try:
        return load(Path(path).absolute().parent), ""
    except GradsmithError as error:
        return Config(), str(error)
    except OSError:
        return Config(), ""


def standing(function: FunctionModel, book: notebook.Notebook | None) -> dict[str, Any]:
    """Where a Function stands, and its text with the comments around it."""
    lines = lines_of(function.file, function.node)
    first, last = min(lines), max(lines)
    cell = book.cell_at(function.node.lineno) if book is not None else None
    offset = cell.offset if cell is not None else 0
    return {
        "name": function.qualname,
        "cell": cell.number if cell is not None else None,
        "line": function.node.lineno - offset,
        "first": first - offset,
        "last": last - offset,
        "text": "\n".join(function.file.lines[first - 1 : last]),
        "whole": _digest(function.file),
    }


def _digest(file: FileModel) -> str:
    return hashlib.blake2b(file.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _moved(old: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[Finding]:
    """The findings of a check where the class stands now. Those outside of it hold only in the very same text."""
    by = now["first"] - old["first"]
    for finding in Report.from_dict({"findings": old["findings"], "subjects": (), "skipped": ()}).findings:
        inside = finding.cell == old["cell"] and old["first"] <= (finding.line or 0) <= old["last"]
        if inside:
            yield _shifted(finding, by, now["cell"])
        elif old["whole"] == now["whole"]:
            yield finding


def _shifted(finding: Finding, by: int, cell: int | None) -> Finding:
    return replace(
        finding,
        cell=cell,
        line=None if finding.line is None else finding.line + by,
        end_line=None if finding.end_line is None else finding.end_line + by,
        edits=tuple(_edit(e, by) for e in finding.edits),
        symptoms=tuple(_shifted(s, by, cell) for s in finding.symptoms),
    )


def _edit(edit: Edit, by: int) -> Edit:
    return replace(edit, line=edit.line + by, end_line=edit.end_line + by)
