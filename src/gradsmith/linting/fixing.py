"""`gs.fix`: apply the edits that findings carry, as text, so that comments and formatting stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.linting import Paths, as_list, rules_for
from gradsmith.linting.changes import Changes, Workbench
from gradsmith.source import notebook, scan
from gradsmith.source.edits import apply
from gradsmith.source.encoding import decoded, encoded, encoding_of
from gradsmith.source.tokens import parses

if TYPE_CHECKING:
    from gradsmith.config import Config


def fix(
    paths: Paths,
    *,
    unsafe: bool = False,
    write: bool = True,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    preview: bool = False,
    config: Config | None = None,
    debug: bool = False,
) -> Changes:
    """Fix what can be fixed in files and folders; `unsafe` also where that may change what the code means.

    With `write=False` the files stay as they are, and `.diff()` shows what would change. `.report` is what is left.

    >>> fix([]).count
    0
    """
    sources = list(scan.read_all(as_list(paths), scan.WITH_NOTEBOOKS, config.excluded if config else None))
    changes = _fixed(sources, unsafe, Workbench(rules_for(select, ignore, preview, config), config, debug))
    if write:
        changes.write()
    return changes


def fix_source(
    text: str | bytes,
    path: str = "<string>",
    *,
    unsafe: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    preview: bool = False,
    config: Config | None = None,
    debug: bool = False,
) -> Changes:
    """Fix one text as if it were the file `path`. Nothing is written.

    >>> fix_source("x = 1").files
    []
    """
    data = text if isinstance(text, bytes) else encoded(text)
    source = scan.SourceFile(path, data, named=True)
    return _fixed([source], unsafe, Workbench(rules_for(select, ignore, preview, config), config, debug))


def is_fixable(finding: Finding, unsafe: bool = False) -> bool:
    """Does the finding carry an edit of the kind that was asked for?"""
    return bool(finding.edits) and (unsafe or finding.applicability == "safe")


def _fixed(sources: Sequence[scan.Seen], unsafe: bool, bench: Workbench) -> Changes:
    def change(path: str, data: bytes, findings: Sequence[Finding]) -> tuple[bytes, int]:
        wanted = [f for f in findings if is_fixable(f, unsafe)]
        return applied(path, data, wanted) if wanted else (data, 0)

    return bench.work(sources, change)


def applied(path: str, data: bytes, findings: Sequence[Finding]) -> tuple[bytes, int]:
    """All the edits together; where that breaks the file, those that do not."""
    together = _compatible(findings)
    after = _edited(path, data, together)
    if _is_whole(path, data, after):
        return after, len(together)
    for finding in together:
        after = _edited(path, data, [finding])
        if _is_whole(path, data, after):
            return after, 1  # the positions of the others have moved: they wait for the next round
    return data, 0


def _compatible(findings: Sequence[Finding]) -> list[Finding]:
    """Findings whose edits can be made at once: a finding's edits go together or wait for the next round."""
    taken: dict[int | None, list[Edit]] = {}
    out: list[Finding] = []
    for finding in findings:
        there = taken.setdefault(finding.cell, [])
        fresh = [e for e in finding.edits if e not in there]
        if not any(_collide(a, b) for a in fresh for b in there):
            there += fresh
            out.append(finding)
    return out


def _collide(a: Edit, b: Edit) -> bool:
    starts = (a.line, a.column), (b.line, b.column)
    ends = (a.end_line, a.end_column), (b.end_line, b.end_column)
    return starts[0] == starts[1] or (starts[0] < ends[1] and starts[1] < ends[0])


def _edited(path: str, data: bytes, findings: Sequence[Finding]) -> bytes:
    if path.endswith(notebook.ENDING):
        by_cell: dict[int, list[Edit]] = {}
        for finding in findings:
            if finding.cell is not None:
                by_cell.setdefault(finding.cell, []).extend(finding.edits)
        return notebook.edited(data, by_cell)
    text = apply(decoded(data), [edit for finding in findings for edit in finding.edits])
    try:
        return text.encode(encoding_of(data))
    except UnicodeEncodeError:
        return data


def _is_whole(path: str, before: bytes, after: bytes) -> bool:
    """The new content parses, unless the old did not either."""
    if path.endswith(notebook.ENDING):
        return len(notebook.read(after).trouble) <= len(notebook.read(before).trouble)
    return parses(after) or not parses(before)
