"""`check --declare-surrogates`: the comments that say which gradients are meant to be surrogates, written into the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradsmith.findings import Edit, Finding, Report
from gradsmith.linting.changes import ChangedFile
from gradsmith.source import model, notebook
from gradsmith.source.edits import apply, insert_before
from gradsmith.source.encoding import decoded, encoding_of
from gradsmith.source.loaded import file_named
from gradsmith.source.tokens import means_the_same

KIND = "surrogate"  # the key under which a finding says which kind it looks like


def declarations(report: Report) -> list[ChangedFile]:
    """The files with a comment above each class whose gradient looks like a surrogate. Nothing is written."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if KIND in finding.evidence and finding.path is not None and not finding.path.endswith(notebook.ENDING):
            by_path.setdefault(finding.path, []).append(finding)
    return [file for path, found in by_path.items() if (file := _commented(path, found)) is not None]


def _commented(path: str, findings: list[Finding]) -> ChangedFile | None:
    data = Path(path).read_bytes()
    text = decoded(data)
    edits = list(dict.fromkeys(_comments(path, findings)))
    after = apply(text, edits)
    if not edits or not means_the_same(text, after):
        return None
    return ChangedFile(path, data, after.encode(encoding_of(data)), len(edits))


def _comments(path: str, findings: list[Finding]) -> Iterator[Edit]:
    file = file_named(path)
    known: dict[str, model.FunctionModel] = {f.qualname: f for f in file.functions} if file is not None else {}
    for finding in findings:
        function = known.get(finding.function or "")
        if file is None or function is None or function.declaration is not None:
            continue
        edit = insert_before(file, function.node, f"# gradsmith: surrogate[{finding.evidence[KIND]}]")
        if edit is not None:
            yield edit
