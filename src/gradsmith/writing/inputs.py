"""`check --write-inputs`: the inputs that were guessed, written into the files as one `gradsmith_inputs`."""

from __future__ import annotations

from pathlib import Path

from gradsmith.findings import Report, Subject
from gradsmith.linting.changes import ChangedFile
from gradsmith.source import notebook
from gradsmith.source.encoding import decoded, encoding_of
from gradsmith.source.tables import with_entries


def declared_inputs(report: Report) -> list[ChangedFile]:
    """The files with the guessed inputs of their subjects declared at the end. Nothing is written."""
    by_path: dict[str, list[Subject]] = {}
    for subject in report.subjects:
        if subject.inputs_from == "guessed" and subject.inputs_code and subject.path is not None:
            by_path.setdefault(subject.path, []).append(subject)
    found = [_declared(path, those) for path, those in by_path.items() if not path.endswith(notebook.ENDING)]
    return [file for file in found if file is not None]


def _declared(path: str, subjects: list[Subject]) -> ChangedFile | None:
    data = Path(path).read_bytes()
    entries = {subject.name: f"lambda: {subject.inputs_code}" for subject in subjects}
    after = with_entries(decoded(data), "gradsmith_inputs", entries, "torch")
    return None if after is None else ChangedFile(path, data, after.encode(encoding_of(data)), len(entries))
