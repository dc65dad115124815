"""One defect, one error: what goes wrong under compile, in threads or recomputed only because of it is folded under it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradsmith.catalog import Rule, find, rules
from gradsmith.findings import Finding, Report
from gradsmith.folding import fold

QUICK = [r for r in rules().values() if r.probe is not None and r.level == "quick" and r.family != "kernels"]
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
    assert "layout-dependent" in {s.rule for s in clamp.symptoms}


def found(rule: str, lens: str, severity: str = "error") -> Finding:
    chosen = find(rule)
    return chosen.stamped(Finding("said", function="F", path="f.py", severity=severity, lenses=(lens,)), lens)


def test_a_suspicion_in_the_source_does_not_hide_what_a_compiled_run_showed() -> None:
    compiled = found("compile-mismatch", "check")
    assert len(fold([found("inplace-grad", "lint"), compiled])) == 2
    assert len(fold([found("inplace-grad", "check", "warning"), compiled])) == 2
    assert [f.rule for f in fold([found("inplace-grad", "check"), compiled])] == ["inplace-grad"]


WRONG_AND_WRITES = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x{kept})
        ctx.calls = 0
        y = x**3
        {after}
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        ctx.calls += 1
        grad_input = grad_output * {factor} * x**2
        {write}
        return grad_input


gradsmith_inputs = {{"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}}
"""


def cube(factor: str = "2", write: str = "pass", after: str = "pass", kept: str = "") -> str:
    return WRONG_AND_WRITES.format(factor=factor, write=write, after=after, kept=kept)


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("inplace-saved", cube(write="x.mul_(0.5)")),
        ("inplace-grad", cube(write="grad_output.mul_(0.5)")),
        ("not-repeatable", cube(factor="2 * ctx.calls")),
        ("inplace-input", cube(after="x.zero_()", kept=".clone()")),
    ],
)
def test_a_wrong_number_stands_beside_a_write_that_did_not_cause_it(
    rule: str, source: str, check_source: Callable[..., Report]
) -> None:
    report = check_source(source, lint=True)
    assert {f.rule for f in report.errors} == {"wrong-gradient", rule}
    (wrong,) = [f for f in report.errors if f.rule == "wrong-gradient"]
    assert wrong.evidence["ratio"] == pytest.approx(2 / 3, rel=1e-3)


def test_a_wrong_number_is_folded_under_the_write_in_forward_that_caused_it(
    check_source: Callable[..., Report],
) -> None:
    report = check_source(cube(factor="3", after="x.mul_(0.5)"), lint=True)
    (finding,) = report.errors
    assert finding.rule == "inplace-input"
    assert "wrong-gradient" in {s.rule for s in finding.symptoms}
