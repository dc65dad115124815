"""Changes to files that are linted again before anything is written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradsmith.catalog import Rule
from gradsmith.config import Config
from gradsmith.findings import Finding, GradsmithError, Report
from gradsmith.linting.run import Run
from gradsmith.source import notebook, scan
from gradsmith.source.edits import unified_diff
from gradsmith.source.encoding import decoded

# A fix may uncover another defect, which has a fix of its own; what is not done by then goes round in circles.
ROUNDS = 10


@dataclass(frozen=True)
class ChangedFile:
    """One file, before and after; `count` findings are gone."""

    path: str
    before: bytes
    after: bytes
    count: int

    def diff(self) -> str:
        """What changed, as `git apply` reads it (for a notebook: the text of its code cells)."""
        return unified_diff(_text(self.path, self.before), _text(self.path, self.after), self.path.lstrip("./"))

    def write(self) -> None:
        """Replace the file by its new content, at once or not at all; links and permissions stay."""
        target = os.path.realpath(self.path)
        unfinished = ""
        try:
            handle, unfinished = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".gradsmith-")
            with os.fdopen(handle, "wb") as out:
                out.write(self.after)
            shutil.copymode(target, unfinished)
            os.replace(unfinished, target)
        except OSError as error:
            if unfinished:
                Path(unfinished).unlink(missing_ok=True)
            raise GradsmithError(f"cannot write {self.path}: {error.strerror}") from None


@dataclass
class Changes:
    """Files that were changed, and the report on what is left."""

    report: Report
    files: list[ChangedFile] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many findings are gone."""
        return sum(file.count for file in self.files)

    def diff(self) -> str:
        return "".join(file.diff() for file in self.files)

    def write(self) -> None:
        for file in self.files:
            file.write()


@dataclass
class Workbench:
    """Sources held in memory, linted and changed until nothing changes any more."""

    rules: list[Rule]
    config: Config | None = None
    debug: bool = False
    originals: dict[str, bytes] = field(default_factory=dict)
    now: dict[str, bytes] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def work(
        self, sources: Sequence[scan.Seen], change: Callable[[str, bytes, Sequence[Finding]], tuple[bytes, int]]
    ) -> Changes:
        """`change(path, data, findings)` gives a file's new bytes and how many findings that settles."""
        self.originals = {s.path: s.data for s in sources if isinstance(s, scan.SourceFile)}
        report = self._lint(sources)
        for _ in range(ROUNDS):
            if not self._round(report, change):
                break
            report = self._lint(sources)
        changed = [
            ChangedFile(path, self.originals[path], data, self.counts[path])
            for path, data in sorted(self.now.items())
            if data != self.originals[path]
        ]
        return Changes(report, changed)

    def _round(self, report: Report, change: Callable[[str, bytes, Sequence[Finding]], tuple[bytes, int]]) -> bool:
        by_path: dict[str, list[Finding]] = {}
        for finding in report.findings:
            if finding.path in self.originals:
                by_path.setdefault(finding.path, []).append(finding)
        changed = False
        for path, findings in by_path.items():
            data = self.now.get(path, self.originals[path])
            after, count = change(path, data, findings)
            if after != data:
                self.now[path] = after
                self.counts[path] = self.counts.get(path, 0) + count
                changed = True
        return changed

    def _lint(self, sources: Sequence[scan.Seen]) -> Report:
        return Run(list(self.rules), self.config, self.debug).report(self._current(sources))

    def _current(self, sources: Sequence[scan.Seen]) -> Iterator[scan.Seen]:
        for source in sources:
            if isinstance(source, scan.SourceFile) and source.path in self.now:
                yield scan.SourceFile(source.path, self.now[source.path], source.named)
            else:
                yield source


def _text(path: str, data: bytes) -> str:
    return notebook.read(data).text if path.endswith(notebook.ENDING) else decoded(data)
