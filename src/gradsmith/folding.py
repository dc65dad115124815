"""One finding per defect: what several lenses saw of it is merged, and what is only a symptom stands under its root."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from gradsmith.catalog import explained_by, find
from gradsmith.findings import RANK, Finding, GradsmithError, Report, Severity


def together(*reports: Report) -> Report:
    """The reports as one, with what two lenses saw of the same defect merged."""
    total = Report()
    for report in reports:
        total = Report(
            findings=fold(merge([*total.findings, *report.findings])),
            subjects=[*total.subjects, *report.subjects],
            skipped=[*total.skipped, *(s for s in report.skipped if s not in total.skipped)],
            files=max(total.files, report.files),
            functions=max(total.functions, report.functions),
            notes=[*total.notes, *(n for n in report.notes if n not in total.notes)],
        )
    return total


def profiled(report: Report, profiles: Sequence[Mapping[str, Any]]) -> Report:
    """The report with profiles, as their JSON has them, at the subjects that they measured, and their findings among the others."""
    subjects = list(report.subjects)
    new: list[Finding] = []
    for profile in profiles:
        name, path = profile["subject"]["name"], profile["subject"]["path"]
        at = [
            i
            for i, s in enumerate(subjects)
            if s.name == name and (None in (path, s.path) or _same_file(path, s.path or ""))
        ]
        if not at:
            raise GradsmithError(f"the report says nothing of {name}, which was profiled")
        shown = {key: value for key, value in profile.items() if key != "findings"}
        subjects[at[0]] = replace(subjects[at[0]], measured={**subjects[at[0]].measured, "profile": shown})
        new += Report.from_dict({"findings": profile["findings"], "subjects": [], "skipped": []}).findings
    return replace(report, findings=fold(merge([*report.findings, *new])), subjects=subjects)


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """One finding per defect: what several lenses saw of (rule, function, argument) becomes one.

    The run-time message wins over the source's, because it carries numbers; the source's position wins, because it
    names the line. Lint alone may report one rule on several lines of one function, and those stay apart.
    """
    out: list[Finding] = []
    read: dict[str, list[int]] = defaultdict(list)  # by rule, what only the source shows: such findings never merge
    seen: dict[str, list[int]] = defaultdict(list)
    for finding in findings:
        only_read = set(finding.lenses) == {"lint"}
        others = seen[finding.rule] if only_read else sorted((*seen[finding.rule], *read[finding.rule]))
        twins = [i for i in others if _same_defect(out[i], finding)]
        twin = min(twins, key=lambda i: out[i].line != finding.line, default=None)  # the one on the same line first
        if twin is None:
            (read if only_read else seen)[finding.rule].append(len(out))
            out.append(finding)
            continue
        if twin in read[finding.rule]:
            read[finding.rule].remove(twin)
            seen[finding.rule].append(twin)
        out[twin] = _joined(out[twin], finding)
    return sorted(out, key=_reading_order)


def fold(findings: Sequence[Finding]) -> list[Finding]:
    """Put findings that are only symptoms under the finding whose rule explains them (same function)."""
    out = list(findings)
    present = {finding.rule for finding in findings}
    for finding in sorted(findings, key=lambda f: len(explained_by(f.rule)), reverse=True):
        known = explained_by(finding.rule)
        if present.isdisjoint(known):
            continue
        roots = [r for r in out if r is not finding and r.rule in known and _explains(r, finding)]
        if not roots or finding not in out or finding.rule == roots[0].rule:
            continue
        # Two roots of which one explains the other: the symptom belongs to the deeper one, or it would be lost with it.
        deepest = [r for r in roots if not any(other.rule in explained_by(r.rule) for other in roots)]
        root = (deepest or roots)[0]
        symptoms = (*root.symptoms, replace(finding, symptoms=()), *finding.symptoms)
        found = replace(root, symptoms=symptoms, severity=_demonstrated(root, finding))
        out[out.index(root)] = _repaired(found, finding)
        out.remove(finding)
    return out


def _repaired(root: Finding, symptom: Finding) -> Finding:
    """A proved repair of the symptom settles the root, too: it is shown there, beside what the root advises."""
    repair = symptom.evidence.get("repair")
    if not repair or root.edits or not symptom.edits:
        return root
    return replace(
        root,
        edits=symptom.edits,
        applicability=symptom.applicability,
        advice=" ".join(filter(None, (root.advice, symptom.advice))),
        evidence={**root.evidence, "repair": repair},
    )


def _demonstrated(root: Finding, symptom: Finding) -> Severity | Literal[""]:
    """What the source only suggests, and running shows to do harm, is an error: no verdict stands without one."""
    if "check" not in symptom.lenses or symptom.severity != "error":
        return root.severity
    second = find(symptom.rule).outcome == "second order"  # an error only where a right second derivative was asked for
    return "error" if second or root.lenses == ("lint",) else root.severity


def _explains(root: Finding, symptom: Finding) -> bool:
    """Whether this very finding accounts for that one.

    What goes wrong under a condition (compiled, in a thread) is a consequence of what was seen to be at least as wrong in
    eager mode, never of a suspicion that only the source raises. Where a measurement ruled a cause out, it is none.
    """
    if find(root.rule).writes_in in symptom.evidence.get("not caused by writes in", ()):
        return False
    if root.evidence.get("elsewhere") and symptom.severity == "error":
        return False  # what was seen on other inputs only is no excuse for what is wrong on these
    if "assumption" in root.evidence and find(symptom.rule).outcome == "wrong":
        return False  # an assumption says under what the numbers are right: wrong ones have another cause
    conditional = symptom.code.startswith("GS6")
    seen = "check" in root.lenses and RANK[root.severity or "info"] <= RANK[symptom.severity or "info"]
    return _same_place(root, symptom) and (seen or not conditional)


def _same_defect(a: Finding, b: Finding) -> bool:
    if a.rule != b.rule or not (_same_place(a, b) or _same_kernel(a, b)) or set(a.lenses) == set(b.lenses) == {"lint"}:
        return False
    if "check" in a.lenses and "check" in b.lenses and a.snippet and b.snippet and a.line != b.line:
        return False  # each was seen on a line of its own
    if a.evidence.get("assumption") != b.evidence.get("assumption"):
        return False  # each is accepted, or mended, by itself
    return a.argument == b.argument or a.argument is None or b.argument is None


def _own_name(finding: Finding) -> str:
    """An operator is `library::name` where it runs, and `name` where it is written."""
    return (finding.function or "").rpartition("::")[2]


def _same_place(a: Finding, b: Finding) -> bool:
    if _own_name(a) != _own_name(b):
        return False
    return a.path is None or b.path is None or _same_file(a.path, b.path)


def _same_kernel(a: Finding, b: Finding) -> bool:
    """Running names the Function that launched a kernel, the source only the kernel."""
    kernels = {a.evidence.get("kernel", a.function), b.evidence.get("kernel", b.function)}
    return len(kernels) == 1 and a.path is not None and b.path is not None and _same_file(a.path, b.path)


def _same_file(a: str, b: str) -> bool:
    return os.path.basename(a) == os.path.basename(b)


def _joined(a: Finding, b: Finding) -> Finding:
    seen, read = (a, b) if "lint" not in a.lenses else (b, a)
    return replace(
        seen,
        severity=min(a.severity, b.severity, key=lambda s: RANK[s or "info"]),
        argument=a.argument or b.argument,
        **{name: getattr(read, name) for name in _PLACE} if read.line is not None else {},
        lenses=tuple(lens for lens in ("lint", "check", "profile") if lens in {*a.lenses, *b.lenses}),
        # A change comes with the words that say what it does, and why it may be unsafe.
        advice=(read.advice if read.edits else seen.advice) or read.advice or seen.advice,
        edits=read.edits or seen.edits,
        applicability=read.applicability or seen.applicability,
        symptoms=(*a.symptoms, *b.symptoms),
        evidence={**read.evidence, **seen.evidence},
        reproduce=seen.reproduce or read.reproduce,
    )


_PLACE = ("path", "line", "column", "end_line", "end_column", "cell", "snippet")


def _reading_order(finding: Finding) -> tuple[str, int, int, int]:
    return (finding.path or "", finding.cell or 0, finding.line or 0, RANK[finding.severity or "info"])
