"""The one currency of gradsmith: a Finding; and the Report that holds Findings and verdicts.

Everything that looks at user code returns Findings, everything shown to a person is rendered from them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from gradsmith import showing
from gradsmith.about import VERSION

Severity = Literal["error", "warning", "info"]
Lens = Literal["lint", "check", "profile"]
Blame = Literal["user", "pytorch", "gradsmith"]
Applicability = Literal["safe", "unsafe"]
Verdict = Literal["verified", "refuted", "unverified", "skipped"]
InputsFrom = Literal["given", "declared", "recorded", "guessed", "none"]
_NAMED: Mapping[InputsFrom, str] = {"recorded": "the recorded inputs", "guessed": "the guessed inputs"}


def named_inputs(source: InputsFrom) -> str:
    """How a sentence names the inputs: those that a user wrote are theirs.

    >>> named_inputs("declared"), named_inputs("guessed")
    ('your inputs', 'the guessed inputs')
    """
    return _NAMED.get(source, "your inputs")


SCHEMA = 1
RANK: dict[str, int] = {"error": 0, "warning": 1, "info": 2}


class GradsmithError(Exception):
    """The call was wrong, or gradsmith cannot go on. The text is one sentence a user can act on."""


@dataclass(frozen=True)
class Edit:
    """Replace the text between two positions (lines from 1, columns from 0, in characters) by `replacement`."""

    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str


@dataclass(frozen=True)
class Reproduction:
    """How to see the finding again without gradsmith: a seed and a snippet of plain PyTorch."""

    seed: int = 0
    inputs: str = ""
    snippet: str = ""


@dataclass(frozen=True)
class Finding:
    """One defect in one place. `rule`, `code` and `severity` are stamped by the catalogue when left empty."""

    message: str
    rule: str = ""
    code: str = ""
    severity: Severity | Literal[""] = ""
    function: str | None = None
    argument: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    cell: int | None = None
    snippet: str = ""
    lenses: tuple[Lens, ...] = ()
    cause: str | None = None
    blame: Blame = "user"
    advice: str | None = None
    edits: tuple[Edit, ...] = ()
    applicability: Applicability | None = None
    symptoms: tuple[Finding, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    reproduce: Reproduction | None = None

    @property
    def fingerprint(self) -> str:
        """Stable across edits elsewhere in the file: made of the rule, the names and the text of the line."""
        import hashlib  # 5 ms, for the formats that need it

        name = os.path.basename(self.path) if self.path else ""
        parts = (self.rule, name, self.function or "", self.argument or "", " ".join(self.snippet.split()))
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; numbers that JSON lacks (nan, inf) become strings."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "symptoms":
                value = [s.to_dict() for s in value]
            elif f.name == "edits":
                value = [vars(e) for e in value]
            elif f.name == "reproduce":
                value = vars(value) if value else None
            out[f.name] = jsonable(value)
        out["fingerprint"] = self.fingerprint
        return out

    def __repr__(self) -> str:
        """Short: lists of findings are looked at, and never evaluated."""
        at = f" at line {self.line}" if self.line is not None else ""
        return f"<{self.severity or 'finding'} {self.rule}{at}: {self.message}>"


@dataclass(frozen=True)
class Subject:
    """One thing that was to be verified, and what became of it."""

    name: str
    verdict: Verdict = "unverified"
    reason: str = ""
    path: str | None = None
    line: int | None = None
    inputs_from: InputsFrom = "none"
    inputs_code: str = ""
    gradient: str = "exact"
    conditions: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()  # what has to hold for the gradient to be right: "'matrix' is symmetric"
    explored: Mapping[str, Any] = field(default_factory=dict)  # how many other examples were right, by kind of step
    coverage: Mapping[str, Any] = field(default_factory=dict)  # which lines ran, which sides of conditions were taken
    known: bool = False  # it stands no worse than in the project's baseline, or a comment ignores what is wrong

    def __repr__(self) -> str:
        return f"<Subject {self.name}: {self.verdict}{f' ({self.reason})' if self.reason else ''}>"

    def to_dict(self) -> dict[str, Any]:
        return {f.name: jsonable(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True)
class Skipped:
    """A file or target that could not be looked at, and why."""

    path: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "reason": self.reason}


class GradientError(AssertionError):
    """Raised by `Report.raise_if_failed()`; its text is the report."""


@dataclass
class Report:
    """Findings and subjects of one run.

    >>> Report(subjects=[Subject("Swish", "verified")]).closing_line()
    '1 verified'
    """

    findings: list[Finding] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    files: int = 0
    functions: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Every requested subject is verified and no finding is an error."""
        return not self.errors and all(s.verdict == "verified" for s in self.subjects)

    @property
    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "error"]

    def at_least(self, severity: Severity) -> list[Finding]:
        return [f for f in self.findings if RANK[f.severity or "info"] <= RANK[severity]]

    def closing_line(self) -> str:
        """The sentence that ends every report: verdicts of the subjects, else the count of findings."""
        return _verdict_line(self.subjects) if self.subjects else self._count_line()

    def _count_line(self) -> str:
        if not self.functions and not self.findings:
            return "nothing to check: no custom gradient found"
        counts = [(sum(f.severity == s for f in self.findings), s) for s in ("error", "warning", "info")]
        words = [plural(n, s) if s != "info" else f"{n} info" for n, s in counts if n]
        where = f"{plural(self.functions, 'custom gradient')} in {plural(self.files, 'file')}"
        return f"{', '.join(words) if words else 'all clean'} ({where}){self._fixable_words()}"

    def _fixable_words(self) -> str:
        safe = sum(bool(f.edits) and f.applicability == "safe" for f in self.findings)
        unsafe = sum(bool(f.edits) and f.applicability == "unsafe" for f in self.findings)
        words = [f"{safe} fixable with --fix"] if safe else []
        words += [f"{unsafe}{' more' if safe else ' fixable'} with --fix --unsafe-fixes"] if unsafe else []
        return f"; {', '.join(words)}" if words else ""

    def raise_if_failed(self) -> None:
        """Raise `GradientError` with the full report unless `ok`."""
        if not self.ok:
            raise GradientError("\n" + str(self))

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "gradsmith": VERSION,
            "findings": [f.to_dict() for f in self.findings],
            "subjects": [s.to_dict() for s in self.subjects],
            "skipped": [s.to_dict() for s in self.skipped],
            "files": self.files,
            "functions": self.functions,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return showing.render(self, "json", "").removesuffix("\n")

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`: results travel between processes as JSON, never as pickle."""
        return Report(
            findings=[_finding_from(d) for d in data["findings"]],
            subjects=[_subject_from(d) for d in data["subjects"]],
            skipped=[Skipped(**d) for d in data["skipped"]],
            files=data.get("files", 0),
            functions=data.get("functions", 0),
            notes=list(data.get("notes", ())),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report; the ending of `path` chooses the format (.html, .json, .sarif, .xml, else text)."""
        text = showing.render(self, None, os.fspath(path))
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def __str__(self) -> str:
        return showing.render(self, "full", "")

    def __repr__(self) -> str:
        """One line, which a failing assertion can show; `print(report)` has it all."""
        return f"<Report: {self.closing_line()}>"

    def _repr_html_(self) -> str:
        return showing.in_notebook(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython's prompt shows: the report, not the dataclass."""
        printer.text(str(self))


def jsonable(value: Any) -> Any:
    """`value` as JSON knows it: tuples to lists, nan and inf to strings, anything strange to its repr."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(v) for v in value]
    return repr(value)


def one_line(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def plural(count: int, noun: str) -> str:
    """
    >>> plural(1, "file"), plural(2, "file")
    ('1 file', '2 files')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _verdict_line(subjects: Sequence[Subject]) -> str:
    words = []
    for verdict, shown in (("verified", "verified"), ("refuted", "refuted"), ("unverified", "not verified")):
        hits = [s for s in subjects if s.verdict == verdict]
        reasons = list(dict.fromkeys(s.reason for s in hits if s.reason)) if verdict == "unverified" else []
        if hits:
            words.append(f"{len(hits)} {shown}" + (f" ({reasons[0]})" if len(hits) == 1 and reasons else ""))
    if skipped := sum(s.verdict == "skipped" for s in subjects):
        words.append(f"{skipped} skipped")
    return ", ".join(words)


def _subject_from(data: Mapping[str, Any]) -> Subject:
    return Subject(**{**data, "assumptions": tuple(data.get("assumptions", ()))})


def _finding_from(data: Mapping[str, Any]) -> Finding:
    values = {k: v for k, v in data.items() if k != "fingerprint"}
    values["lenses"] = tuple(values["lenses"])
    values["symptoms"] = tuple(_finding_from(s) for s in values["symptoms"])
    values["edits"] = tuple(Edit(**e) for e in values["edits"])
    values["reproduce"] = Reproduction(**values["reproduce"]) if values["reproduce"] else None
    return Finding(**values)
