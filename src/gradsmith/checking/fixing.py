"""`gradsmith check --fix`: apply the edits of findings, check again, and take back what did not help."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gradsmith.findings import Finding, Report
from gradsmith.linting.changes import ChangedFile
from gradsmith.linting.fixing import applied, is_fixable

_INSTALLED = ("site-packages", "dist-packages")


@dataclass
class Fixes:
    """Files before and after, what was left alone and why, and the report that counts."""

    report: Report
    files: list[ChangedFile] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(file.count for file in self.files)

    def diff(self) -> str:
        return "".join(file.diff() for file in self.files)


def read_before(paths: Sequence[str]) -> dict[str, bytes]:
    """The files as they are before anything runs: one that changes meanwhile is left alone."""
    return {os.path.realpath(p): Path(p).read_bytes() for p in paths if os.path.isfile(p)}


def fixes(report: Report, before: dict[str, bytes], *, unsafe: bool) -> Fixes:
    """What the findings would change. Nothing is written."""
    found = Fixes(report)
    for path, findings in sorted(_by_path(report, unsafe).items()):
        real = os.path.realpath(path)
        if any(part in _INSTALLED for part in Path(real).parts):
            found.left.append(f"{path} is installed, not yours to change: its findings are not fixed")
        elif not os.path.isfile(real):
            continue
        elif before.get(real, Path(real).read_bytes()) != Path(real).read_bytes():
            found.left.append(f"{path} has changed while it was checked: run it again")
        else:
            data = Path(real).read_bytes()
            after, count = applied(path, data, findings)
            if after != data:
                found.files.append(ChangedFile(_shown(path), data, after, count))
    return found


def fixed(found: Fixes, again: Callable[[], Report]) -> Fixes:
    """Write the files and check again; a file in which a subject is now worse gets its old content back."""
    written: list[ChangedFile] = []
    for file in found.files:
        if Path(file.path).read_bytes() != file.before:
            found.left.append(f"{file.path} has changed while it was checked: run it again")
        else:
            file.write()
            written.append(file)
    if not written:
        return replace(found, files=[])
    report = again()
    worse = [file for file in written if _is_worse(file.path, found.report, report)]
    for file in worse:
        replace(file, before=file.after, after=file.before).write()
        found.left.append(f"{file.path} is as it was: with the fixes it would not be better")
    kept = [file for file in written if file not in worse]
    return Fixes(again() if worse else report, kept, found.left)


def _shown(path: str) -> str:
    """The path as the user sees it from here, which is what `git apply` reads."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _by_path(report: Report, unsafe: bool) -> dict[str, list[Finding]]:
    """Findings with edits by file. Those of one class that carry the same edits are one."""
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.path and is_fixable(finding, unsafe):
            found.setdefault(finding.path, []).append(finding)
    return {path: sorted(each, key=lambda f: not f.evidence.get("repair")) for path, each in found.items()}


def _is_worse(path: str, before: Report, after: Report) -> bool:
    """Whether a subject of this file lost its verdict, or nothing that was an error is gone."""
    old = {s.name: s.verdict for s in before.subjects if _same(s.path, path)}
    new = {s.name: s.verdict for s in after.subjects if _same(s.path, path)}
    if any(verdict == "verified" and new.get(name) != "verified" for name, verdict in old.items()):
        return True
    return _errors(path, after) > _errors(path, before)


def _errors(path: str, report: Report) -> int:
    return sum(f.severity == "error" for f in report.findings if _same(f.path, path))


def _same(one: str | None, other: str) -> bool:
    return one is not None and os.path.realpath(one) == os.path.realpath(other)
