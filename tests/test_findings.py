"""Merging, folding, verdicts, JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from gradsmith.findings import Finding, GradientError, Report, Subject
from gradsmith.folding import fold, merge


def found(rule: str, **fields: object) -> Finding:
    finding = Finding("m", rule=rule, code="GS999", severity="error", function="F", path="a.py", lenses=("check",))
    return replace(finding, **fields)  # type: ignore[arg-type]


def test_two_lenses_on_one_defect_make_one_finding_with_the_line_of_one_and_the_numbers_of_the_other() -> None:
    read = found(
        "inplace-grad", lenses=("lint",), line=7, column=4, snippet="g.mul_(2)", argument="g", severity="warning"
    )
    seen = found("inplace-grad", line=1, evidence={"n": 1})
    (one,) = merge([read, seen])
    assert one.lenses == ("lint", "check")
    assert (one.line, one.snippet, one.argument) == (7, "g.mul_(2)", "g")
    assert one.evidence == {"n": 1}
    assert one.severity == "error"


def test_lint_alone_may_report_a_rule_on_several_lines() -> None:
    findings = [found("data-attr", lenses=("lint",), line=line) for line in (3, 9)]
    assert len(merge(findings)) == 2


def test_other_arguments_and_other_functions_stay_apart() -> None:
    findings = [
        found("wrong-gradient", argument="x"),
        found("wrong-gradient", argument="w"),
        found("wrong-gradient", argument="x", function="G"),
    ]
    assert len(merge(findings)) == 3


def test_symptoms_are_folded_under_their_root_in_the_same_function_only() -> None:
    root = found("inplace-saved")
    own, other = found("not-repeatable"), found("not-repeatable", function="G")
    folded = fold([root, own, other])
    assert [f.rule for f in folded] == ["inplace-saved", "not-repeatable"]
    assert [s.rule for s in folded[0].symptoms] == ["not-repeatable"]
    assert folded[1].function == "G"


def test_folding_keeps_the_severity_of_the_root() -> None:
    root = found("undeclared-surrogate", severity="warning")
    (one,) = fold([root, found("wrong-gradient")])
    assert one.severity == "warning"


@pytest.mark.parametrize(
    ("subjects", "line"),
    [
        (
            [
                ("A", "verified", ""),
                ("B", "verified", ""),
                ("C", "refuted", "x"),
                ("D", "unverified", "no inputs worked"),
            ],
            "2 verified, 1 refuted, 1 not verified (no inputs worked)",
        ),
        ([("A", "verified", "")], "1 verified"),
    ],
)
def test_the_closing_line(subjects: list[tuple[str, str, str]], line: str) -> None:
    report = Report(subjects=[Subject(n, v, r) for n, v, r in subjects])  # type: ignore[arg-type]
    assert report.closing_line() == line


def test_ok_means_every_subject_verified() -> None:
    assert Report(subjects=[Subject("A", "verified")]).ok
    for verdict in ("refuted", "unverified", "skipped"):
        report = Report(subjects=[Subject("A", "verified"), Subject("B", verdict)])  # type: ignore[arg-type]
        assert not report.ok
        with pytest.raises(GradientError):
            report.raise_if_failed()


def test_json_has_no_nan_and_comes_back_the_same() -> None:
    finding = found(
        "wrong-gradient", evidence={"ratio": math.inf, "element": (1, 2)}, symptoms=(found("not-repeatable"),)
    )
    report = Report(findings=[finding], subjects=[Subject("A", "refuted")])
    data = json.loads(report.to_json())
    assert data["schema"] == 1
    assert data["findings"][0]["evidence"] == {"ratio": "inf", "element": [1, 2]}
    assert json.loads(Report.from_dict(data).to_json()) == data


def test_the_fingerprint_survives_a_moved_line() -> None:
    a = found("data-attr", line=3, snippet="  x.data")
    assert a.fingerprint == replace(a, line=99, snippet="x.data").fingerprint
    assert a.fingerprint != replace(a, rule="inplace-grad").fingerprint
