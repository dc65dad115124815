"""What an editor may offer for findings: the edits they carry, and comments that ignore, declare or accept."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradsmith.findings import Edit, Finding, Report
from gradsmith.linting.fixing import fix_source
from gradsmith.linting.ignoring import comments
from gradsmith.server.reading import configured
from gradsmith.source import FileModel, notebook, project
from gradsmith.source.edits import apply, insert_before, split_lines
from gradsmith.source.encoding import decoded, encoded
from gradsmith.source.tokens import means_the_same

_LONGEST = 100  # letters of a title


@dataclass(frozen=True)
class Offer:
    """One entry of the menu; `findings` are the numbers of the findings that it settles."""

    title: str
    edits: list[tuple[int | None, Edit]] = field(default_factory=list)  # the cell of a notebook, and the edit
    findings: list[int] = field(default_factory=list)
    preferred: bool = False

    def to_dict(self) -> dict[str, Any]:
        edits = [{"cell": cell, **vars(edit)} for cell, edit in self.edits]
        return {"title": self.title, "edits": edits, "findings": self.findings, "preferred": self.preferred}


def offered(path: str, text: str, findings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The offers for these findings. What two findings are offered alike stands in the menu once."""
    source = _Source(path, text)
    given = Report.from_dict({"findings": findings, "subjects": (), "skipped": ()}).findings
    menu: list[Offer] = []
    for number, finding in enumerate(given):
        for offer in source.offers(number, finding):
            if same := next((one for one in menu if (one.title, one.edits) == (offer.title, offer.edits)), None):
                same.findings.extend(offer.findings)
            else:
                menu.append(offer)
    return [offer.to_dict() for offer in menu]


def all_fixed(path: str, text: str) -> list[dict[str, Any]]:
    """The edits that fix all that is safe to fix in the whole text."""
    return [edit for offer in _Source(path, text).fix_all() for edit in offer.to_dict()["edits"]]


class _Source:
    """A file or a notebook, as text."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.data = encoded(text)
        self.book = notebook.read(self.data) if path.endswith(notebook.ENDING) else None
        self.cells = notebook.sources(self.data) if self.book is not None else {}

    def offers(self, number: int, finding: Finding) -> Iterator[Offer]:
        if finding.edits:
            warned = " (may change what the code means)" if finding.applicability != "safe" else ""
            edits = [(finding.cell, edit) for edit in finding.edits]
            title = f"{_short(_deed(finding))} [{finding.rule}]{warned}"
            yield Offer(title, edits, [number], preferred=finding.applicability == "safe")
        if kind := finding.evidence.get("surrogate"):
            yield from self._above(f"# gradsmith: surrogate[{kind}]", "declare a surrogate", number, finding)
        if accept := finding.evidence.get("accept"):
            yield from self._above(str(accept), "accept the assumption", number, finding)
        yield from self._ignored(number, finding)

    def _above(self, comment: str, what: str, number: int, finding: Finding) -> Iterator[Offer]:
        """A comment above the class of a finding."""
        file = FileModel(self.path, self.book.text if self.book is not None else self.text)
        functions = {f.qualname: f for f in project.load([file], [file]).functions}
        function = functions.get(finding.function or "")
        edit = insert_before(file, function.node, comment) if function is not None else None
        if edit is not None and function is not None and means_the_same(file.text, apply(file.text, [edit])):
            place = Finding("", line=edit.line, edits=(edit,))
            place = self.book.placed(place) if self.book is not None else place
            yield Offer(f"{what}: {comment}", [(place.cell, one) for one in place.edits], [number])

    def _ignored(self, number: int, finding: Finding) -> Iterator[Offer]:
        text = self.cells.get(finding.cell or 0, "") if self.book is not None else self.text
        edits = comments(text, [finding])
        if edits and (self.book is not None or means_the_same(text, apply(text, edits))):
            placed = [(finding.cell, edit) for edit in edits]
            yield Offer(f"ignore here: # gradsmith: ignore[{finding.rule}]", placed, [number])

    def fix_all(self) -> Iterator[Offer]:
        changes = fix_source(self.data, self.path, config=configured(self.path)[0])
        for file in changes.files:
            after = decoded(file.after)
            edits: list[tuple[int | None, Edit]]
            if self.book is None:
                edits = [(None, edit) for edit in _difference(self.text, after)]
            else:
                new = notebook.sources(file.after)
                edits = [(n, e) for n, old in self.cells.items() for e in _difference(old, new[n])]
            yield Offer("fix all that is safe to fix", edits)


def _deed(finding: Finding) -> str:
    """What the edits of a finding do. The advice of a repair tells how it was found, too; that stands in the message."""
    repair = finding.evidence.get("repair")
    if not isinstance(repair, Mapping):
        return finding.advice or "Fix it"
    if repair.get("derived"):
        names = " and ".join(f"'{name}'" for name in repair.get("gradients", ()))
        return f"Replace the gradient of {names} by the one derived from forward"
    return next((s for s in (finding.advice or "").split("; ") if s.startswith("Write `")), "Repair backward")


def _short(advice: str) -> str:
    line = advice.splitlines()[0] if advice else ""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _difference(before: str, after: str) -> Iterator[Edit]:
    """The lines that changed, so that a cursor elsewhere stays where it is."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(old) != len(split_lines(before)) - before.endswith(("\n", "\r")):  # form feeds and the like: all at once
        lines = split_lines(before)
        yield Edit(1, 0, len(lines), len(lines[-1]), after)
        return
    last = (len(old), len(old[-1])) if old and not old[-1].endswith(("\n", "\r")) else (len(old) + 1, 0)
    for kind, first, end, start, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            begin = (first + 1, 0) if first < len(old) else last
            until = (end + 1, 0) if end < len(old) else last
            yield Edit(*begin, *until, "".join(new[start:stop]))
