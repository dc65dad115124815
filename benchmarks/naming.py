"""What counts as naming a defect: shared by reach.py and impoverished.py, which compare a broken Function with a right one.

Works on reports as JSON (`gradsmith check --format json`, `Report.to_dict()`), of any version: fields that a version does
not have yet are taken as empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Named = tuple[str, str]  # the rule and the argument
ASSUMES = "assumes"
WORST_FIRST = ("refuted", "unverified", "skipped", "verified")
# Contract, silent and numerics: the families whose findings are about the numbers that backward returns.
WRONG = ("GS1", "GS2", "GS3")
RAISED = "backward-raised"


@dataclass(frozen=True)
class Said:
    """One finding, as far as a reader has to judge it."""

    rule: str
    code: str
    severity: str
    message: str
    argument: str = ""
    cause: str = ""
    advice: str = ""
    lenses: tuple[str, ...] = ("check",)  # what only the source suggests names no wrong number

    @property
    def key(self) -> Named:
        return self.rule, self.argument

    @property
    def is_assumption(self) -> bool:
        """A stated assumption, or a warning that the gradient is wrong somewhere."""
        wrong = (self.code[:3] in WRONG and "check" in self.lenses) or self.rule == RAISED
        return self.rule == ASSUMES or (self.severity == "warning" and wrong)

    def __str__(self) -> str:
        return f"[{self.severity} {self.rule}] {self.message}"


@dataclass(frozen=True)
class Answer:
    """What gradsmith said about one file, or one subject."""

    verdict: str = "none"
    reasons: tuple[str, ...] = ()
    said: tuple[Said, ...] = ()
    trouble: tuple[str, ...] = field(default=())  # crashes and limits, in words

    @property
    def errors(self) -> dict[Named, Said]:
        return {s.key: s for s in self.said if s.severity == "error"}

    @property
    def assumptions(self) -> dict[Named, Said]:
        return {s.key: s for s in self.said if s.severity != "error" and s.is_assumption}


def answer(report: Mapping[str, Any]) -> Answer:
    """The report as an Answer; its verdict is the worst of its subjects."""
    said = [_said(f) for f in report["findings"]]
    subjects = report["subjects"]
    if not any(s.rule == ASSUMES for s in said):
        sentences = [text for subject in subjects for text in subject.get("assumptions") or ()]
        said += [Said(ASSUMES, "", "warning", str(text), argument=str(text)) for text in sentences]
    verdicts = {subject["verdict"] for subject in subjects}
    verdict = next((word for word in WORST_FIRST if word in verdicts), "none")
    reasons = tuple(dict.fromkeys(subject["reason"] for subject in subjects if subject["reason"]))
    trouble = tuple(str(s) for s in said if s.rule in ("crashed", "timed-out", "out-of-memory", "import-failed"))
    return Answer(verdict, reasons, tuple(said), trouble)


def outcome(broken: Answer, right: Answer) -> tuple[str, Said | None]:
    """("error" | "assumption" | "silent" | "unverified", what named it): only what the right one does not get counts."""
    errors = [s for key, s in broken.errors.items() if key not in right.errors]
    if errors:
        return "error", errors[0]
    if broken.verdict == "refuted" and right.verdict != "refuted":
        return "error", next(iter(broken.errors.values()), None)
    stated = [s for key, s in broken.assumptions.items() if key not in right.assumptions]
    if stated:
        return "assumption", next((s for s in stated if s.rule == ASSUMES), stated[0])
    return ("silent" if broken.verdict == "verified" else "unverified"), None


def _said(finding: Mapping[str, Any]) -> Said:
    texts = {name: finding.get(name) or "" for name in ("rule", "code", "severity", "message", "argument", "cause")}
    return Said(**texts, advice=finding.get("advice") or "", lenses=tuple(finding.get("lenses") or ("check",)))
