"""`gs.add_ignores`: write the comments that hide today's findings, so that only new ones show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.linting import Paths, as_list, rules_for
from gradsmith.linting.changes import Changes, Workbench
from gradsmith.source import notebook, scan
from gradsmith.source.edits import apply, split_lines
from gradsmith.source.encoding import decoded, encoding_of
from gradsmith.source.slices import headers
from gradsmith.source.tokens import ends_inside_string, means_the_same

if TYPE_CHECKING:
    from gradsmith.config import Config

_IGNORE = re.compile(r"(#\s*gradsmith:\s*ignore\s*\[)([^\]\n]*)\]", re.I)


def add_ignores(
    paths: Paths,
    *,
    write: bool = True,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    preview: bool = False,
    config: Config | None = None,
    debug: bool = False,
) -> Changes:
    """Write `# gradsmith: ignore[rule]` on the line of every finding. `.report` is what no comment can hide.

    >>> add_ignores([]).count
    0
    """
    rules = [rule for rule in rules_for(select, ignore, preview, config) if not rule.after_others]
    sources = list(scan.read_all(as_list(paths), scan.WITH_NOTEBOOKS, config.excluded if config else None))
    changes = Workbench(rules, config, debug).work(sources, _with_comments)
    if write:
        changes.write()
    return changes


def _with_comments(path: str, data: bytes, findings: Sequence[Finding]) -> tuple[bytes, int]:
    if path.endswith(notebook.ENDING):
        sources = notebook.sources(data)
        by_cell: dict[int, list[Finding]] = {}
        for finding in findings:
            if finding.cell is not None:
                by_cell.setdefault(finding.cell, []).append(finding)
        edits = {number: comments(sources[number], found) for number, found in by_cell.items()}
        return notebook.edited(data, edits), len(findings)
    text = decoded(data)
    after = apply(text, comments(text, findings))
    return (after.encode(encoding_of(data)), len(findings)) if means_the_same(text, after) else (data, 0)


def comments(text: str, findings: Sequence[Finding]) -> list[Edit]:
    """The edits that write an `ignore` comment for each of these findings, where one can stand."""
    lines = split_lines(text)
    closed = set(_open_ended(text, lines))
    names: dict[int, list[str]] = {}
    for finding in findings:
        first = finding.line or 0
        candidates = [first, finding.end_line or first, *_class_line(text, finding)]
        line = next((n for n in candidates if 0 < n <= len(lines) and n not in closed), None)
        if line is not None and finding.rule not in names.setdefault(line, []):
            names[line].append(finding.rule)
    return [_comment(line, lines[line - 1], rules) for line, rules in names.items()]


def _comment(line: int, text: str, rules: Sequence[str]) -> Edit:
    if there := _IGNORE.search(text):
        known = [name.strip() for name in there[2].split(",") if name.strip()]
        return Edit(line, there.start(2), line, there.end(2), ", ".join(dict.fromkeys([*known, *rules])))
    end = len(text.rstrip())
    return Edit(line, end, line, len(text), f"  # gradsmith: ignore[{', '.join(rules)}]")


def _class_line(text: str, finding: Finding) -> Iterable[int]:
    """The line of the class a finding is about: a comment there speaks for all of it."""
    name = (finding.function or "").rpartition(".")[2]
    return [h.line for h in headers(text) if h.name == name and h.line <= (finding.line or 0)][-1:]


def _open_ended(text: str, lines: Sequence[str]) -> Iterable[int]:
    """Lines at whose end a comment would be part of a string, or would break a continued line."""
    yield from (number for number, line in enumerate(lines, 1) if line.endswith("\\"))
    yield from ends_inside_string(text)
