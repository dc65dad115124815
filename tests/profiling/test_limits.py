"""Subjects that are too slow, too fast, or change their inputs; what is said, and that it ends. No clock is asserted on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.lab import resolve
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import Timing, timed

NO_TIME = 1e-9  # a budget that any subject overdraws


class Counted:
    """A callable that knows how often it ran, and on which values."""

    def __init__(self) -> None:
        self.sums: list[float] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.sums.append(float(x.detach().sum()))
        out = x * 2
        x.detach().add_(1)  # a side effect that would add up
        return out


def test_a_subject_that_is_too_slow_is_run_as_often_as_was_said_and_no_more() -> None:
    said: list[str] = []
    subject = Counted()
    profile = gs.profile(subject, torch.zeros(4, requires_grad=True), budget=NO_TIME, on_progress=said.append)
    (sentence,) = [text for text in said if "this will take about" in text]
    once, about = (float(part.split(" s")[0].split()[-1]) for part in sentence.split(";"))
    assert len(subject.sums) <= 6 == pytest.approx(about / once, rel=0.1)
    assert profile.rounds >= 1 and profile.forward_s > 0
    assert profile.growth == [] and any("other sizes were left out" in note for note in profile.notes)


def test_every_run_gets_fresh_copies() -> None:
    subject = Counted()
    x = torch.full((4,), 3.0, requires_grad=True)
    gs.profile(subject, x, budget=0.2, growth=False)
    assert set(subject.sums) == {12.0}
    assert torch.equal(x, torch.full((4,), 3.0))


def test_a_module_that_counts_keeps_its_count() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * 2

    layer = Counting()
    gs.profile(layer, torch.randn(4, requires_grad=True), budget=0.2, growth=False)
    assert float(layer.calls) == 0


def test_what_is_too_fast_is_repeated_until_the_median_is_known() -> None:
    steady, noisy = Timing(), Timing()
    steady.forward += [1e-6] * 14
    assert not steady.settled()  # too few, however steady
    steady.forward.append(1e-6)
    assert steady.settled()
    noisy.forward += [1e-6, 3e-6] * 50
    assert not noisy.settled()
    profile = gs.profile(torch.neg, torch.randn(1, requires_grad=True), budget=2.0, growth=False)
    assert profile.rounds >= 15


def test_a_backward_that_fails_at_a_larger_size_only_keeps_the_growth_before_it() -> None:
    class Small(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            if grad_output.shape[0] > 10:
                raise ValueError("too long")
            return grad_output * 2

    profile = gs.profile(Small, torch.randn(4, requires_grad=True), budget=1.0)
    (growth,) = profile.growth
    assert growth.sizes[: len(growth.recordings)] == [4, 8]
    assert growth.stopped.startswith("x.shape[0] = 16")


def test_growth_curves_are_in_the_data() -> None:
    def rows(x: Tensor) -> Tensor:
        return torch.stack([row * 2 for row in x])

    profile = gs.profile(rows, torch.randn(4, 3, requires_grad=True), budget=2.0)
    curve = next(g for g in profile.to_dict()["growth"] if g["dimension"] == "x.shape[0]")
    assert curve["sizes"] == [4, 8, 16]
    assert curve["forward_ops"] == [5, 9, 17]
    assert curve["exponents"]["forward_ops"] == pytest.approx(1.0, abs=0.02)
    assert set(curve) >= {"backward_ops", "forward_bytes", "backward_bytes", "saved_bytes", "seconds", "stopped"}


def test_recorded_inputs_of_this_process_are_used() -> None:
    class Halve(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x / 2

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return grad_output / 2

    with gs.record() as tape:
        Halve.apply(torch.randn(5, 7, requires_grad=True)).sum().backward()
    profile = gs.profile(Halve, budget=0.2, growth=False)
    assert tape.count(Halve) == 1 and profile.inputs_from == "recorded"
    assert profile.inputs == "x (5, 7) float32"


def test_guessed_inputs_are_single_precision_and_large_enough_to_measure() -> None:
    def doubled(x: Tensor, weight: Tensor) -> Tensor:
        return x @ weight

    profile = gs.profile(doubled, budget=0.3, growth=False)
    assert profile.inputs_from == "guessed" and "float32" in profile.inputs
    assert profile.bench is not None
    assert max(leaf.tensor.numel() for leaf in profile.bench.arguments.leaves) >= 1 << 15


def test_where_no_inputs_work_it_says_what_to_write() -> None:
    def picky(x: Tensor) -> Tensor:
        raise ValueError("not like this")

    with pytest.raises(gs.GradsmithError, match=r"picky: no inputs worked .*gradsmith_inputs = "):
        gs.profile(picky)


def pointers(subject: Any, *inputs: Any) -> list[int]:
    """Where the first input was in each run of a bench that is being clocked."""
    seen: list[int] = []

    def watched(*args: Any) -> Any:
        seen.append(args[0].data_ptr())
        return subject(*args)

    bench = Bench.of(resolve(watched), inputs, {})
    bench.first()
    timed(bench, budget=60.0, least=8, most=8)
    return seen


def test_a_subject_that_leaves_its_inputs_alone_finds_them_where_they_were() -> None:
    x = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    seen = pointers(lambda x: x * 2, x)
    assert len(set(seen[2:])) == 1  # the first run and the first to warm up had copies of their own
    assert x.data_ptr() not in seen


@pytest.mark.parametrize("write", [lambda x: x.detach().add_(1), lambda x: x.data.zero_()], ids=["detach", "data"])
def test_a_subject_that_writes_into_its_inputs_gets_fresh_ones(write: Callable[[Tensor], Tensor]) -> None:
    sums: list[float] = []

    def scribble(x: Tensor) -> Tensor:
        sums.append(float(x.detach().sum()))
        out = x * 2
        write(x)
        return out

    pointers(scribble, torch.ones(4, requires_grad=True))
    assert set(sums) == {4.0}


def test_a_backward_that_writes_into_grad_output_gets_a_fresh_one() -> None:
    arrived: list[float] = []

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            arrived.append(float(grad_output.sum()))
            return grad_output.mul_(2)

    gs.profile(Scale, torch.ones(4, requires_grad=True), budget=0.2, growth=False)
    assert len(set(arrived)) == 1 < len(arrived)


def test_a_subject_that_begins_to_write_later_gets_fresh_ones_from_then_on() -> None:
    bench = Bench.of(resolve(lambda x: x * 2), (torch.ones(3, requires_grad=True),), {})
    bench.learn(bench.first())
    assert bench.shares
    call = bench.call()
    call.forward()
    call.leaves[0].data.add_(1)
    bench.learn(call)
    assert not bench.shares
    assert torch.equal(bench.call().leaves[0], torch.ones(3))


def test_the_clock_and_the_attribution_take_turns() -> None:
    once = gs.profile(torch.neg, torch.randn(1, requires_grad=True), budget=NO_TIME)
    often = gs.profile(torch.neg, torch.randn(1, requires_grad=True), budget=60.0, growth=False)
    assert once.rounds == 1
    assert often.rounds % 4 == 0 and often.rounds >= 4 * 15  # four moments, each with as many rounds
