"""Formats that other programs read: held to their structure, and to what a reader of them needs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from gradsmith.catalog import rules
from gradsmith.findings import Finding, Report, Skipped, Subject
from gradsmith.linting import lint, lint_source
from gradsmith.report import render
from gradsmith.report.sarif_format import as_dict

SCHEMA = json.loads((Path(__file__).parent / "sarif_subset.json").read_text())
BAD = rules()["inplace-grad"].bad


def report_of_everything() -> Report:
    """Findings with and without place, names that need escaping, skipped files and every verdict."""
    found = lint_source(BAD, "a folder/öps, 100%:1.py").findings
    odd = replace(found[0], message="100% wrong, line one\nline two <&> \x1b[31m", cell=3, path="n.ipynb", edits=())
    homeless = replace(found[0], path=None, line=None, column=None, end_line=None, end_column=None, severity="info")
    verdicts = [
        Subject(v, v, "because of <this>", "ops.py", 3) for v in ("verified", "refuted", "unverified", "skipped")
    ]
    return Report([*found, *found, odd, homeless], verdicts, [Skipped("x y.py", "syntax error")], 3, 1)


def test_sarif_fits_the_structure() -> None:
    for report in (Report(), report_of_everything(), lint_source(BAD, "/elsewhere/ops.py")):
        log = json.loads(render(report, "sarif"))
        jsonschema.Draft7Validator(SCHEMA).validate(log)


def test_sarif_places_are_relative_and_results_point_into_the_rule_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my ops.py").write_text(BAD)
    (run,) = as_dict(lint([tmp_path]))["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "my%20ops.py",
        "uriBaseId": "SRCROOT",
    }
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["name"] == "inplace-grad"
    table = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in table] == [*(rule.code for rule in rules().values()), "not-verified"]
    help = table[result["ruleIndex"]]["help"]["markdown"]
    assert rules()["inplace-grad"].good.strip() in help and "**Why it matters.**" in help
    region = result["locations"][0]["physicalLocation"]["region"]
    assert BAD.split("\n")[region["startLine"] - 1][region["startColumn"] - 1 :].startswith("grad_output.mul_")


def test_sarif_has_a_note_for_what_is_not_verified() -> None:
    (run,) = as_dict(report_of_everything())["runs"]
    (note,) = [r for r in run["results"] if r["ruleId"] == "not-verified"]
    assert note["level"] == "note" and note["message"]["text"] == "unverified is not verified: because of <this>"
    assert run["tool"]["driver"]["rules"][note["ruleIndex"]]["id"] == "not-verified"
    assert note["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_sarif_fingerprints_survive_edits_elsewhere_and_are_unique() -> None:
    def prints(text: str) -> list[str]:
        return [
            r["partialFingerprints"]["gradsmith/v1"] for r in as_dict(lint_source(text, "ops.py"))["runs"][0]["results"]
        ]

    twice = BAD.replace("        grad_output.mul_(2)\n", "        grad_output.mul_(2)\n" * 2)
    assert prints(BAD) == prints("# a new first line\n" + BAD)
    assert len(set(prints(twice))) == len(prints(twice)) == 2


def test_a_line_of_a_notebook_cell_is_no_region_of_the_file() -> None:
    result = as_dict(report_of_everything())["runs"][0]["results"][2]
    assert result["properties"]["cell"] == 3
    assert "region" not in result["locations"][0]["physicalLocation"]


def test_github_commands_are_one_line_each_with_escaped_properties() -> None:
    *commands, closing = render(report_of_everything(), "github").splitlines()
    assert all(re.match(r"::(error|warning|notice) [^:]*::.", line) for line in commands), commands
    assert "file=a folder/öps%2C 100%25%3A1.py,line=12,col=9," in commands[0]
    assert "Also here: inplace-grad (line 12)." in commands[0]  # one for each subject, however much is found in it
    assert "line one%0Aline two" in commands[1]
    assert commands[2].startswith("::notice ")
    assert [c.split(" ")[0] for c in commands] == ["::error", "::error", "::notice", "::warning", "::warning"]
    assert any("unverified is not verified" in line for line in commands)
    assert not closing.startswith("::")


def test_junit_counts_what_fails() -> None:
    root = xml.fromstring(render(report_of_everything(), "junit").split("\n", 1)[1])
    assert root.get("failures") == "4"  # three findings above info, one refuted subject
    assert root.get("errors") == "1"  # the unverified subject
    assert root.get("skipped") == "2"  # a subject and a file
    assert int(root.get("tests", "0")) == len(root.findall(".//testcase")) == 9
    for suite in root:
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert xml.fromstring(render(Report(files=1, functions=1), "junit").split("\n", 1)[1]).get("failures") == "0"


def test_severity_levels_are_those_of_each_format() -> None:
    report = Report([Finding("Said.", rule="inplace-grad", code="GS202", severity="info", path="a.py", line=1)])
    assert as_dict(report)["runs"][0]["results"][0]["level"] == "note"
    assert render(report, "github").startswith("::notice ")
    assert "<failure" not in render(report, "junit")
