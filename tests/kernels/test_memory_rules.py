"""What kernels do to memory is named at the kernel's own line, and right kernels are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import Rule, rules
from gradsmith.findings import Report

pytest.importorskip("triton")
PROBED = [r for r in rules().values() if r.family == "kernels" and r.probe is not None]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """Every example of every rule, checked in one go."""
    folder = tmp_path_factory.mktemp("kernels")
    for rule in PROBED:
        stem = rule.name.replace("-", "_")
        (folder / f"{stem}_bad.py").write_text(rule.bad, encoding="utf-8")
        (folder / f"{stem}_good.py").write_text(rule.good, encoding="utf-8")
        if rule.fixable:
            fixed = gs.fix_source(rule.bad, unsafe=True).files[0].after.decode()
            (folder / f"{stem}_fixed.py").write_text(fixed, encoding="utf-8")
    whole = gs.check_paths(folder, level="standard")
    found: dict[str, Report] = {}
    for path in folder.glob("*.py"):
        subjects = [s for s in whole.subjects if s.path == str(path)]
        findings = [f for f in whole.findings if f.path == str(path)]
        found[path.stem] = Report(findings, subjects)
    return found


@pytest.mark.parametrize("rule", PROBED, ids=lambda r: r.name)
def test_a_broken_kernel_is_named(rule: Rule, reports: dict[str, Report]) -> None:
    report = reports[f"{rule.name.replace('-', '_')}_bad"]
    named = [f for f in report.errors if f.rule == rule.name]
    assert named, [(f.rule, f.severity, f.message) for f in report.findings]
    assert report.subjects[0].verdict == "refuted"
    if rule.name != "autotune-key-missing":
        changed = set(rule.bad.splitlines()) - set(rule.good.splitlines())
        lines = rule.bad.splitlines()
        assert any(lines[f.line - 1] in changed for f in named if f.line)


@pytest.mark.parametrize("rule", PROBED, ids=lambda r: r.name)
def test_a_right_kernel_is_verified(rule: Rule, reports: dict[str, Report]) -> None:
    report = reports[f"{rule.name.replace('-', '_')}_good"]
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason
    assert [f.rule for f in report.findings if f.severity != "info"] == []


@pytest.mark.parametrize("rule", [r for r in PROBED if r.fixable], ids=lambda r: r.name)
def test_a_fixed_kernel_is_verified(rule: Rule, reports: dict[str, Report]) -> None:
    report = reports[f"{rule.name.replace('-', '_')}_fixed"]
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


def test_the_example_files_are_all_checked(reports: dict[str, Report]) -> None:
    assert all(len(r.subjects) == 1 for r in reports.values())


def test_an_access_outside_says_what_was_touched(reports: dict[str, Report]) -> None:
    (found,) = [f for f in reports["out_of_bounds_load_bad"].errors if f.rule == "out-of-bounds-load"]
    access = dict(found.evidence["access"])
    assert access.pop("words") in found.message  # the caption of the drawing
    assert access == {"shape": [37], "elements": 37, "touched": [[32, 47]]}


def test_files_are_where_findings_point(reports: dict[str, Report]) -> None:
    assert all(Path(f.path).is_file() for r in reports.values() for f in r.findings if f.path)
