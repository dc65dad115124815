"""A baseline: what a project knows of already. Only what is new counts after it.

Findings are known by their fingerprint, which does not change when lines move; subjects by file and name. Never imports torch.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradsmith.findings import Finding, GradsmithError, Report, Subject, plural

FORMAT = 1
FILE = "gradsmith-baseline.json"
_WORSE = {"verified": 0, "skipped": 1, "unverified": 1, "refuted": 2}


@dataclass(frozen=True)
class Baseline:
    """How often each finding is known, and how each subject that is not verified stands."""

    findings: Mapping[str, int] = field(default_factory=dict)
    subjects: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(path: str | Path) -> Baseline:
        """What `write` wrote; anything else is refused in words."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise GradsmithError(f"{path} was written by another gradsmith; write it again: gradsmith baseline")
            return Baseline({f["fingerprint"]: f["count"] for f in data["findings"]}, dict(data["subjects"]))
        except OSError as error:
            raise GradsmithError(f"the baseline {path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise GradsmithError(f"{path} is not a baseline; write one: gradsmith baseline ({error})") from None

    def without_known(self, report: Report) -> Report:
        """The report without the findings that are known; subjects that stand no worse than before are marked as known.

        A line that stands twice in the baseline hides two findings: a third one is new.
        """
        left = Counter(self.findings)
        new = []
        for finding in report.findings:
            if left[finding.fingerprint] > 0:
                left[finding.fingerprint] -= 1
            else:
                new.append(finding)
        subjects = [replace(s, known=True) if self._knows(s) else s for s in report.subjects]
        known = len(report.findings) - len(new)
        marked = sum(s.known for s in subjects)
        told = [plural(known, "finding")] if known else []
        told += [plural(marked, "subject")] if marked else []
        notes = [f"{' and '.join(told)} known from the baseline, not counted"] if told else []
        return replace(report, findings=new, subjects=subjects, notes=[*report.notes, *notes])

    def _knows(self, subject: Subject) -> bool:
        before = self.subjects.get(_named(subject))
        return before is not None and 0 < _WORSE[subject.verdict] <= _WORSE[before]


def write(report: Report, path: str | Path) -> Baseline:
    """Write all that the report holds, for people to read as well as for us: rule, file and Function of every finding."""
    counts = Counter(f.fingerprint for f in report.findings)
    first = {f.fingerprint: f for f in reversed(report.findings)}
    findings = sorted((_entry(first[print_], count) for print_, count in counts.items()), key=_order)
    subjects = {_named(s): s.verdict for s in report.subjects if s.verdict != "verified"}
    data = {"format": FORMAT, "findings": findings, "subjects": dict(sorted(subjects.items()))}
    try:
        Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise GradsmithError(f"cannot write {path}: {error.strerror}") from None
    return Baseline(dict(counts), subjects)


def _entry(finding: Finding, count: int) -> dict[str, Any]:
    place = {"path": _relative(finding.path), "function": finding.function}
    return {"fingerprint": finding.fingerprint, "rule": finding.rule, **place, "count": count}


def _order(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return (entry["path"] or "", entry["function"] or "", entry["rule"], entry["fingerprint"])


def _named(subject: Subject) -> str:
    return f"{_relative(subject.path)}::{subject.name}"


def _relative(path: str | None) -> str:
    """From the current folder, with slashes: a baseline is read on other machines, too."""
    if path is None:
        return ""
    here = os.getcwd() + os.sep
    return os.path.abspath(path).removeprefix(here).replace(os.sep, "/")
