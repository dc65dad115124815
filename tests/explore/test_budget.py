"""A forward that takes long is decided with fewer runs, and the report says what was left out."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.lab.explore.budget import budget_of, cost_of, within
from gradsmith.lab.run import Allowance, Spent, counted

PASSED = [0.0]  # seconds of CPU time that nobody has to wait for


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("thread_time", "process_time"):
        real = getattr(time, name)
        monkeypatch.setattr(time, name, lambda real=real: real() + PASSED[0])


def busy(seconds: float) -> None:
    """CPU time, as a long loop takes it: the clocks go on."""
    PASSED[0] += seconds


class SlowSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        busy(0.15)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class SlowWrongSquare(SlowSquare):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x * grad_output


def example() -> Tensor:
    return torch.tensor([0.5, -1.5, 2.25], dtype=torch.float64, requires_grad=True)


def test_a_slow_forward_is_verified_and_the_report_says_what_was_left_out() -> None:
    report = gs.check(SlowSquare, example(), select=["wrong-gradient", "GS2", "GS3"])
    (subject,) = report.subjects
    assert subject.verdict == "verified", str(report)
    left_out = subject.to_dict()["measured"]["left out"]
    assert left_out["because"] == "forward and backward take about 0.3 s"
    assert any(what.startswith("exploring after") for what in left_out["what"])
    assert "tie-gradient" in left_out["what"] and "wrong-gradient" not in left_out["what"]
    assert any(
        note.startswith("SlowSquare: these checks were left out, because forward and backward take")
        for note in report.notes
    )


def test_a_slow_wrong_gradient_is_refuted() -> None:
    report = gs.check(SlowWrongSquare, example(), level="quick", select=["wrong-gradient"])
    assert report.subjects[0].verdict == "refuted", str(report)


def test_a_cheap_forward_leaves_nothing_out() -> None:
    report = gs.check(torch.tanh, example(), level="quick")
    assert "left out" not in report.subjects[0].measured


@pytest.mark.parametrize("level", ["quick", "standard", "deep"])
def test_the_number_of_runs_is_a_power_of_two_and_falls_with_the_cost(level: str) -> None:
    runs = [budget_of(level, cost).runs for cost in (1e-5, 1e-3, 5e-3, 0.02, 0.1, 0.4, 1.5, 20.0)]
    assert runs == sorted(runs, reverse=True)
    assert all(n & (n - 1) == 0 and n > 0 for n in runs)


def test_a_machine_that_is_a_little_busier_gets_the_same_budget() -> None:
    assert budget_of("standard", 0.1) == budget_of("standard", 0.2)


@pytest.mark.parametrize("loading", [0.9e-3, 4.5e-3, 0.4])
def test_what_only_a_first_run_takes_does_not_count(monkeypatch: pytest.MonkeyPatch, loading: float) -> None:
    clock = iter([0.0, loading, loading, loading + 2e-4])
    monkeypatch.setattr("gradsmith.lab.explore.budget.time.thread_time", lambda: next(clock))
    assert budget_of("standard", cost_of(lambda: None)) == budget_of("standard", 2e-4)


def test_a_run_that_takes_many_times_as_long_counts_for_several() -> None:
    with Allowance(100, cost=1e-3) as allowance:
        with counted():
            busy(0.01)
        assert 8 <= allowance.used <= 16
        before = allowance.used
        with counted(as_one=True):
            busy(0.01)
        assert allowance.used == before + 1


def test_a_reserved_allowance_takes_nothing_from_the_others() -> None:
    with Allowance(1) as outer:
        with Allowance(5, reserved=True), counted():
            pass
        assert outer.used == 0


def test_only_the_allowance_that_is_spent_ends_its_question() -> None:
    def three_runs() -> str:
        for _ in range(3):
            with counted():
                pass
        return "done"

    assert within(Allowance(3), three_runs) == "done"
    assert within(Allowance(2), three_runs) is None
    with pytest.raises(Spent), Allowance(2):
        within(Allowance(10), three_runs)
