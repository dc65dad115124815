"""One defect, one error: what goes wrong under compile, in threads or recomputed only because of it is folded under it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradsmith.catalog import Rule, find, rules
from gradsmith.findings import Finding, Report
from gradsmith.folding import fold

QUICK = [r for r in rules().values() if r.probe is not None and r.level == "quick"]
SAMPLE = ("inplace-grad", "inplace-saved", "class-state")
FIRST = Path(__file__).parents[2] / "examples" / "first_gradient.py"


def serious(report: Report) -> set[str]:
    return {f.rule for f in report.findings if f.severity != "info"}


def alone_at_standard(rule: Rule, check_source: Callable[..., Report]) -> None:
    report = check_source(rule.bad, level="standard", lint=True)
    assert serious(report) <= {rule.name}, [(f.rule, f.message) for f in report.findings]
    assert rule.name in {f.rule for f in report.findings}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_root_seen_in_eager_mode_stands_alone(name: str, check_source: Callable[..., Report]) -> None:
    alone_at_standard(find(name), check_source)


@pytest.mark.deep
@pytest.mark.parametrize("rule", [r for r in QUICK if r.name not in SAMPLE], ids=lambda rule: rule.name)
def test_every_root_stands_alone(rule: Rule, check_source: Callable[..., Report]) -> None:
    alone_at_standard(rule, check_source)


def test_the_first_example_has_one_error_per_mistake(check_source: Callable[..., Report]) -> None:
    report = check_source(FIRST.read_text(encoding="utf-8"))
    assert sorted((f.function, f.rule) for f in report.errors) == [
        ("LeakyClamp", "inplace-grad"),
        ("Swish", "wrong-gradient"),
    ]
    (clamp,) = [f for f in report.errors if f.function == "LeakyClamp"]
    assert "compile-mismatch" in {s.rule for s in clamp.symptoms}


def found(rule: str, lens: str, severity: str = "error") -> Finding:
    chosen = find(rule)
    return chosen.stamped(Finding("said", function="F", path="f.py", severity=severity, lenses=(lens,)), lens)


def test_a_suspicion_in_the_source_does_not_hide_what_a_compiled_run_showed() -> None:
    compiled = found("compile-mismatch", "check")
    assert len(fold([found("inplace-grad", "lint"), compiled])) == 2
    assert len(fold([found("inplace-grad", "check", "warning"), compiled])) == 2
    assert [f.rule for f in fold([found("inplace-grad", "check"), compiled])] == ["inplace-grad"]
