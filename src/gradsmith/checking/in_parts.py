"""Large inputs are checked in two parts: the gradient as they are, and all else on their first rows.

A probe holds several runs beside each other, exploring runs forward a hundred times: on inputs of 400 MB both take what few machines
have. Neither needs them to be large. What only large inputs show is a wrong number, and that one is judged on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradsmith.checking import verdict
from gradsmith.findings import Report
from gradsmith.inputs.recorded import runs
from gradsmith.inputs.scaling import first_parts
from gradsmith.lab import Lab
from gradsmith.lab.lab import LARGE, size_of
from gradsmith.lab.subject.binding import Example, bound
from gradsmith.lab.subject.target import Target


@dataclass(frozen=True)
class CutExample:
    """An example that is cut from a large one: `words` say how, as in `sizes 1000000 to 488`."""

    example: Example
    words: str


def part_of(lab: Lab, target: Target, example: Example) -> CutExample | None:
    """The part of a large example on which all but its gradient is checked; None where the subject takes none."""
    if not lab.large:
        return None
    (args, kwargs), words = first_parts(example)
    if (
        not words
        or size_of(bound(target, args, kwargs)[1]) >= LARGE
        or not runs(target, args, kwargs, lab.settings.seed)
    ):
        return None
    return CutExample((args, kwargs), words)


def is_wrong(report: Report) -> bool:
    """Whether a wrong number was found, of which a part of an example may be the cause: its rows no longer sum to 1."""
    return any(f.severity == "error" for f in report.findings) and "wrong" in verdict.outcomes(report)


def of_part_alone(report: Report, part: CutExample) -> Report:
    """The report on the part, where the whole is not right either."""
    (subject,) = report.subjects
    note = f"{subject.name}: your inputs are large; what is said of it was found on a part of them ({part.words})"
    return replace(report, notes=[*report.notes, note])


def of_both(whole: Report, part: Report, cut: CutExample) -> list[Report]:
    """The reports on the whole and on its part; what could not be settled on the part says nothing of the whole."""
    (subject,) = whole.subjects
    judged = f"{subject.name}: the gradient was judged at your inputs, which are large"
    if is_wrong(part) or part.subjects[0].verdict == "unverified":
        why = "it is wrong" if is_wrong(part) else part.subjects[0].reason
        note = f"{judged}; nothing else was checked: on a part of them ({cut.words}) {why}"
        return [replace(whole, notes=[*whole.notes, note])]
    return [
        replace(whole, notes=[*whole.notes, f"{judged}; all else was checked on a part of them ({cut.words})"]),
        part,
    ]
