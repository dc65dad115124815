"""From what the rules said to what is reported: each finding once, hidden ones left out, symptoms under causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradsmith.findings import Finding
from gradsmith.folding import fold, merge
from gradsmith.source import FileModel, FunctionModel, LayerModel
from gradsmith.source.ignoring import head_of, hiding

Subject = FunctionModel | LayerModel | FileModel


class Found(NamedTuple):
    """A finding, the file the rule was looking at, and where comments that speak of it may stand.

    `is_own`: it stands in the class it is reported for, not in a base class. `stands_in` is the file it points into,
    `header` the lines at the head of the class.
    """

    finding: Finding
    file: FileModel
    stands_in: FileModel
    is_own: bool
    header: range

    @staticmethod
    def of(finding: Finding, subject: Subject, file: FileModel) -> Found:
        where = file
        if isinstance(subject, FunctionModel) and finding.path != file.path:
            where = next((b.file for b in subject.bases if b.file.path == finding.path), file)
        return Found(finding, file, where, _is_own(finding, subject, file), head_of(getattr(subject, "node", None)))

    def is_hidden(self) -> bool:
        """A comment of the author hides it; that comment is then known to be of use."""
        return bool(hiding(self.finding, self.stands_in, self.file, self.header))


def _is_own(finding: Finding, subject: Subject, file: FileModel) -> bool:
    node, line = getattr(subject, "node", None), finding.line or 0
    if node is None or finding.path != file.path:
        return node is None
    return bool(node.lineno <= line <= (node.end_lineno or line))


def settled(found: Sequence[Found], afterwards: Callable[[], Sequence[Found]]) -> list[Finding]:
    """Each finding once (a subclass repeats those of its base), without hidden ones, symptoms under their causes.

    `afterwards` is asked once it is known which comments hid something.
    """
    once: dict[tuple[object, ...], Finding] = {}
    _collect(found, once)
    _collect(afterwards(), once)
    by_path: dict[str | None, list[Finding]] = {}
    for finding in once.values():
        by_path.setdefault(finding.path, []).append(finding)
    return [finding for path in sorted(by_path, key=str) for finding in fold(merge(by_path[path]))]


def _collect(found: Sequence[Found], once: dict[tuple[object, ...], Finding]) -> None:
    for item in sorted(found, key=lambda item: not item.is_own):
        finding = item.finding
        key = (finding.rule, finding.path, finding.cell, finding.line, finding.column, finding.argument)
        if key not in once and not item.is_hidden():
            once[key] = finding
