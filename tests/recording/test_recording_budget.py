"""What is checked first, what is left out, and that it is said."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
import torch

import gradsmith as gs
from gradsmith.checking.notes import TIME, notes
from gradsmith.checking.options import Options
from gradsmith.checking.recorded import is_installed, not_ours, own_functions
from gradsmith.checking.run import examine
from gradsmith.inputs.examples import Supply
from gradsmith.inputs.recorded import most_different_first
from gradsmith.lab import Lab, Settings
from gradsmith.lab.measure.screening import screened
from gradsmith.lab.run import RunLimit, Spent, counted
from gradsmith.lab.subject.binding import bound
from gradsmith.lab.subject.target import resolve
from tests.recording.functions_that_run import Scale


def test_calls_that_differ_most_come_first() -> None:
    with gs.record() as tape:
        for size in (3, 4, 5, 6):
            Scale.apply(torch.randn(size, requires_grad=True), None, 2.0)
        Scale.apply(torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True), None, 5.0)
    calls = tape.of(Scale)
    order = most_different_first(calls)
    assert order[0] is calls[0] and order[1] is calls[-1]
    assert sorted(map(id, order)) == sorted(map(id, calls))


def test_a_limit_of_time_counts_also_where_runs_are_reserved() -> None:
    from gradsmith.lab.run import Allowance

    with RunLimit(100.0), counted():
        pass
    with pytest.raises(Spent) as caught, RunLimit(-1.0), Allowance(5, reserved=True), counted():
        raise AssertionError("it ran")
    assert isinstance(caught.value.allowance, RunLimit)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no alarm")
def test_a_limit_of_time_stops_a_run_that_has_begun_and_nothing_between_runs() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with RunLimit(0.05) as limit:
        while not limit.over:
            pass
        sum(range(1_000_000))  # the alarm has rung by now, and nothing was raised

    def run_without_end() -> None:
        with counted():
            while True:
                pass

    with pytest.raises(Spent), RunLimit(0.05):
        run_without_end()
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_somebody_elses_alarm_is_left_alone() -> None:
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("Windows has no alarm")
    theirs = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        with RunLimit(100.0):
            assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
            assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    finally:
        signal.signal(signal.SIGALRM, theirs)


def test_what_no_time_is_left_for_is_not_verified() -> None:
    with gs.record() as tape:
        Scale.apply(torch.randn(3, requires_grad=True), None, 2.0)
    report = tape.check(level="quick", budget=0.0)
    (subject,) = report.subjects
    assert subject.verdict == "unverified" and "the time for it was spent" in subject.reason
    assert any(note.startswith("checked in 0 s of the 0 s") for note in report.notes)


class Slow(torch.autograd.Function):
    """2x after 20 ms of work, and a count of its runs."""

    runs = 0
    slope = 2.0

    @staticmethod
    def forward(ctx, x):
        Slow.runs += 1
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return Slow.slope * grad_output


def _look(limit: RunLimit) -> tuple[gs.Report, int]:
    x = torch.linspace(-1, 1, 6, dtype=torch.float64).requires_grad_()
    before = Slow.runs
    with limit:
        report = examine(resolve(Slow), Supply((((x,), {}),), "given"), Options(level="quick"))
    return report, Slow.runs - before


@pytest.mark.parametrize(("slope", "verdict"), [(2.0, "verified"), (2.1, "refuted")])
def test_at_a_first_look_only_the_gradient_of_a_slow_subject_is_judged(
    slope: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slow, "slope", slope)
    report, runs = _look(RunLimit(1000.0, first_look=True))
    (subject,) = report.subjects
    assert subject.verdict == verdict and subject.measured["left out"]["because"] == TIME
    whole, more = _look(RunLimit(1000.0))
    assert whole.subjects[0].verdict == verdict and runs < more


def test_a_gradient_that_was_judged_stays_judged_when_the_time_is_over() -> None:
    lab = Lab(resolve(Slow), *_arguments(), Settings())
    assert [pair.status for pair in lab.gradient.pairs] == ["right"]
    with RunLimit(-1.0):
        assert notes(lab) == []


def test_without_autograd_differences_alone_tell_right_from_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    found = screened(resolve(Slow), *_arguments(), Settings(), autograd=False)
    assert found is not None and found.oracle is None and [pair.status for pair in found.pairs] == ["right"]
    monkeypatch.setattr(Slow, "slope", 2.001)
    assert screened(resolve(Slow), *_arguments(), Settings(), autograd=False) is None


def _arguments() -> list[Any]:
    x = torch.linspace(-1, 1, 6, dtype=torch.float64).requires_grad_()
    return [bound(resolve(Slow), (x,), {})[1]]


def test_functions_of_installed_packages_are_left_out_and_named() -> None:
    from torch.utils.checkpoint import CheckpointFunction

    assert is_installed(CheckpointFunction) and not is_installed(Scale)
    assert own_functions([Scale, CheckpointFunction], third_party=True) == ([Scale, CheckpointFunction], [])
    mine, others = own_functions([Scale, CheckpointFunction], third_party=False)
    assert (mine, others) == ([Scale], [CheckpointFunction])
    named = "torch.utils.checkpoint.CheckpointFunction"
    assert not_ours(others) == f"1 Function of installed packages not checked (--third-party checks them): {named}"
