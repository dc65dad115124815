"""The verdicts: one line each, with where else a gradient is right and what it assumes; many that are alike share one."""

from __future__ import annotations

from collections.abc import Sequence

from gradsmith.findings import Subject
from gradsmith.report.coverage import not_reached
from gradsmith.report.explored import below, right_where
from gradsmith.report.layout import wrapped
from gradsmith.report.style import Style

_COLOR = {"verified": "green", "refuted": "red", "unverified": "yellow", "skipped": "dim"}
_INDENT = " " * 14
_ONE_BY_ONE = 10  # so many verified subjects are told with all that is known of them; of more, `-v` tells it
_ALIKE = 3


def word(verdict: str) -> str:
    """What people read: `not verified` for `unverified`."""
    return "not verified" if verdict == "unverified" else verdict


def verdicts(subjects: Sequence[Subject], style: Style, width: int, *, verbose: bool) -> list[str]:
    """A line for each subject; without `verbose`, one for all of which the same is told."""
    if verbose:
        return [line for s in subjects for line in _verdict(s, [s.name], style, width)]
    short = sum(s.verdict == "verified" for s in subjects) > _ONE_BY_ONE
    groups: dict[tuple[str, ...], list[Subject]] = {}
    for subject in subjects:
        told = _told(subject, short=short)
        key = told if told[0] != "refuted" else (*told, subject.name)
        groups.setdefault(key, []).append(subject)
    lines = []
    for those in groups.values():
        rows = [those] if len(those) >= _ALIKE else [[one] for one in those]
        lines += [line for row in rows for line in _verdict(row[0], [s.name for s in row], style, width, short=short)]
    return lines


def verdict_line(subject: Subject, names: Sequence[str] = (), *, short: bool = False) -> str:
    """`refuted  Swish [declared inputs]: wrong-gradient`; of a verified one, where else it is right, and what it assumes."""
    verdict, after, words, *_ = _told(subject, short=short)
    named = ", ".join(names or [subject.name])
    if len(names) > 1:
        return f"{word(verdict):<12}  {len(names)} subjects{after}{words}: {named}"
    return f"{word(verdict):<12}  {named}{after}{words}"


def _told(subject: Subject, *, short: bool) -> tuple[str, ...]:
    """All that is told of a subject besides its name."""
    origin = f" [{subject.inputs_from} inputs]" if subject.inputs_from != "none" else ""
    meant = f" ({subject.gradient} gradient)" if subject.gradient != "exact" else ""
    known = " (known)" if subject.known else ""
    brief = short and subject.verdict == "verified"
    where = _assumed(subject) if brief else right_where(subject)
    words = "; ".join(filter(None, (subject.reason, where)))
    under = () if brief else (*below(subject), *not_reached(subject))
    return subject.verdict, f"{meant}{origin}{known}", f": {words}" if words else "", *under


def _assumed(subject: Subject) -> str:
    return f"assumes: {', '.join(subject.assumptions)}" if subject.assumptions else ""


def _verdict(subject: Subject, names: Sequence[str], style: Style, width: int, *, short: bool = False) -> list[str]:
    lines = wrapped(verdict_line(subject, names, short=short), width, indent=_INDENT)
    said = word(subject.verdict)
    lines[0] = style.paint(said, _COLOR[subject.verdict]) + lines[0].removeprefix(said)
    under = _told(subject, short=short)[3:]
    told = [line for text in under for line in wrapped(text.strip(), width, first=_INDENT, indent=_INDENT)]
    return [*lines, *told]
