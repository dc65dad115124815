"""`check --write-inputs`: the inputs that were guessed, written into the files as one `gradsmith_inputs`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

from gradsmith.findings import Report, Subject
from gradsmith.linting.changes import ChangedFile
from gradsmith.source import notebook
from gradsmith.source.encoding import decoded, encoding_of
from gradsmith.source.imports import read

NAME = "gradsmith_inputs"


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
    text = decoded(data)
    entries = {s.name: f'    "{s.name}": lambda: {s.inputs_code},' for s in subjects if _is_python(s.inputs_code)}
    after = _with(text, entries)
    if after is None or not entries or not _is_python(after, "exec"):
        return None
    return ChangedFile(path, data, after.encode(encoding_of(data)), len(entries))


def _with(text: str, entries: dict[str, str]) -> str | None:
    """The text with these entries in its table of inputs; None where its table is not a plain one."""
    newline = "\r\n" if "\r\n" in text else "\n"
    try:
        tables = [node.value for node in ast.parse(text).body if isinstance(node, ast.Assign) and _is_ours(node)]
    except SyntaxError:
        return None
    lines = list(entries.values())
    if not tables:
        header = [] if read(text).names.get("torch") == "torch" else ["import torch  # for the inputs below", ""]
        block = newline.join([*header, f"{NAME} = {{", *lines, "}"])
        return f"{text.rstrip()}{newline}{newline}{newline}{block}{newline}"
    table = tables[-1]
    if not isinstance(table, ast.Dict):
        return None
    known = {key.value for key in table.keys if isinstance(key, ast.Constant)}
    new = [line for name, line in entries.items() if name not in known]
    if not new:
        return None
    rows = text.split(newline)
    row, column = table.lineno - 1, table.col_offset + 1  # behind the opening brace
    head, tail = (part.decode() for part in (rows[row].encode()[:column], rows[row].encode()[column:]))
    rest = [f"    {tail.strip()}"] if tail.strip() else []
    return newline.join([*rows[:row], head, *new, *rest, *rows[row + 1 :]])


def _is_ours(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == NAME for target in node.targets)


def _is_python(code: str, mode: Literal["eval", "exec"] = "eval") -> bool:
    try:
        ast.parse(code, mode=mode)
    except SyntaxError:
        return False
    return True
