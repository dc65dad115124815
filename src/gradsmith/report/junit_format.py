"""JUnit XML: a suite per file with a case per finding, and a suite with a case per checked subject."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Iterable

from gradsmith.findings import Finding, Report, Subject
from gradsmith.report.escaping import PROSE, escaped
from gradsmith.report.place import place, shown_path


def render(report: Report, *, color: bool = False) -> str:
    suites = [_suite(path, [_finding(f) for f in found]) for path, found in _by_path(report.findings)]
    if report.subjects:
        suites.append(_suite("gradsmith check", [_subject(s) for s in report.subjects]))
    if report.skipped:
        suites.append(_suite("skipped", [_case(shown_path(s.path), "skipped", "", s.reason) for s in report.skipped]))
    if not suites:
        suites = [_suite("gradsmith", [_case("clean", None, "", report.closing_line())])]
    root = xml.Element("testsuites", _totals(suites) | {"name": "gradsmith"})
    root.extend(suites)
    xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _by_path(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(shown_path(finding.path) if finding.path else "<no file>", []).append(finding)
    return list(groups.items())


def _finding(finding: Finding) -> xml.Element:
    text = f"{place(finding)}\n{finding.snippet.strip()}\n{finding.advice or ''}".strip()
    # What is only worth knowing must not fail a build: it passes, and is told in the output.
    kind = "failure" if finding.severity in ("error", "warning") else None
    case = _case(f"{finding.rule} ({finding.code})", kind, f"{finding.severity}: {finding.message}", text, finding.rule)
    case.set("classname", _fit(finding.function or place(finding)))
    if finding.path is not None:
        case.set("file", _fit(shown_path(finding.path)))
    if finding.line is not None:
        case.set("line", str(finding.line))
    return case


def _subject(subject: Subject) -> xml.Element:
    kind = {"refuted": "failure", "unverified": "error", "skipped": "skipped"}.get(subject.verdict)
    kind = "skipped" if subject.known else kind
    case = _case(subject.name, kind, subject.reason, subject.reason, subject.verdict)
    case.set("classname", "gradsmith.check")
    return case


def _case(name: str, kind: str | None, message: str, text: str, type: str = "gradsmith") -> xml.Element:
    case = xml.Element("testcase", {"name": _fit(name), "classname": "gradsmith", "time": "0"})
    words = {"message": _fit(message or text)}
    inner = xml.SubElement(case, kind or "system-out", {} if kind is None else words)
    if kind in ("failure", "error"):
        inner.set("type", type)
    inner.text = _fit(text if kind else f"{message}\n{text}".strip())
    return case


def _suite(name: str, cases: list[xml.Element]) -> xml.Element:
    suite = xml.Element("testsuite", {"name": _fit(name)})
    suite.extend(cases)
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", "0")
    return suite


def _totals(suites: list[xml.Element]) -> dict[str, str]:
    return {key: str(sum(int(s.get(key, "0")) for s in suites)) for key in ("tests", "failures", "errors", "skipped")}


def _fit(text: str) -> str:
    return escaped(text, PROSE)
