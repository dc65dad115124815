"""A library of surrogates is told once: what is the same of many Functions of a file becomes one block of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradsmith.findings import Finding

KIND = "one of a kind"
_FEWEST = 3  # two of a kind are still read one by one


def told_once(findings: Sequence[Finding]) -> list[Finding]:
    """The findings as they are shown: those of one rule, kind and file as one, which names every Function and its line.

    Only for readers: the report itself keeps a finding for each Function.
    """
    groups: dict[tuple[str, str | None, str], list[Finding]] = {}
    for finding in findings:
        if KIND in finding.evidence:
            groups.setdefault((finding.rule, finding.path, finding.evidence[KIND]), []).append(finding)
    shown = list(findings)
    for members in groups.values():
        if len(members) >= _FEWEST:
            shown[shown.index(members[0])] = _one(members)
            for other in members[1:]:
                shown.remove(other)
    return shown


def _one(members: Sequence[Finding]) -> Finding:
    first = members[0]
    names = ", ".join(f"{f.function} (line {f.line})" if f.line is not None else f"{f.function}" for f in members)
    message = f"{len(members)} Functions of a kind: {first.evidence[KIND]}. They are {names}."
    advice = f"{first.advice} A comment at a class that they all derive from counts for all of them."
    return replace(first, message=message, advice=advice, snippet="", reproduce=None, symptoms=())


def notes_together(notes: Sequence[str], names: Sequence[str]) -> list[str]:
    """The notes as they are shown: `Swish: WHAT: details` of three subjects or more is told once, with their number."""
    about: dict[str, list[str]] = {}
    for note in notes:
        name, _, rest = note.partition(": ")
        what, colon, _ = rest.partition(": ")
        if name in names and colon:
            about.setdefault(what, []).append(note)
    many = {what: found for what, found in about.items() if len(found) >= _FEWEST}
    hidden = {note: what for what, found in many.items() for note in found}
    first = {found[0]: f"{len(found)} subjects: {what} (-v shows each)" for what, found in many.items()}
    return [first.get(note, note) for note in notes if note not in hidden or note in first]
