"""What a finding promises: a gain with bounds, and the operations that would go. Counts and order, never the clock."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradsmith as gs
from gradsmith.profiling.whatif import Estimate
from gradsmith.report.profile_table import _expected


def findings(fn: Any, *inputs: Any, rule: str) -> list[gs.Finding]:
    profile = gs.profile(fn, *inputs, budget=0.5, growth=False, select=[rule])
    return [f for f in profile.findings if f.rule == rule]


def test_an_estimate_lies_between_its_bounds():
    assert (Estimate(2.0, 3.0, 1.0).low, Estimate(2.0, 3.0, 1.0).high) == (2.0, 2.0)
    assert (Estimate(2.0, 1.0, 3.0).low, Estimate(2.0, 1.0, 3.0).high) == (1.0, 3.0)
    assert Estimate.of(2.0).low == 2.0


def test_every_gain_has_bounds_and_what_goes_stays_within_the_whole():
    profile = gs.profile(torch.tanh, torch.randn(64, 64, requires_grad=True), budget=0.3, growth=False)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        gain = profile.gain(share * profile.total_s)
        assert gain.low <= gain <= gain.high
        least, most = profile._going(share * profile.total_s)
        assert -1e-12 <= least <= share * profile.total_s * (1 + 1e-9)
        assert share * profile.total_s <= most <= profile.total_s * (1 + 1e-9)


@pytest.mark.parametrize(
    ("gain", "bounds", "words"),
    [
        (1.4, [1.3, 1.6], " Expected gain: 1.4x (1.3 to 1.6)."),
        (12.0, [3.0, 40.0], " Expected gain: 3x to 40x."),
        (1.02, [1.0, 1.1], ""),
        (2.0, [2.0, 2.0], " Expected gain: 2.0x."),
    ],
)
def test_bounds_far_apart_are_all_that_is_said(gain, bounds, words):
    assert _expected({"predicted_gain": gain, "predicted_range": bounds}) == words


def test_a_loop_over_two_tensors_at_once_is_an_element_loop():
    def paired(x, w):
        return torch.stack([a @ b for a, b in zip(x, w)])

    inputs = torch.randn(16, 4, 4, requires_grad=True), torch.randn(16, 4, 4, requires_grad=True)
    (found,) = findings(paired, *inputs, rule="element-loop")
    assert found.evidence["iterations"] == 16
    low, high = found.evidence["predicted_range"]
    assert low <= found.evidence["predicted_gain"] <= high


class Cloning(Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return (x * gate).clone()

    @staticmethod
    def backward(ctx, grad_output):
        x, gate = ctx.saved_tensors
        return (grad_output * gate).clone(), grad_output * x


class Returning(Cloning):
    """Needs its clone: an input that is returned as it is would be a view of it."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return x.clone()


def test_a_clone_of_what_was_just_computed_is_needless_and_one_of_an_input_is_not():
    inputs = torch.randn(64, 64, requires_grad=True), torch.rand(64, 64, requires_grad=True)
    first = Cloning.forward.__code__.co_firstlineno
    lines = {f.line for f in findings(Cloning, *inputs, rule="needless-copy")}
    assert lines == {first + 3, Cloning.backward.__code__.co_firstlineno + 3}
    own = Returning.forward.__code__.co_firstlineno
    assert own + 3 not in {f.line for f in findings(Returning, *inputs, rule="needless-copy")}


class Gated(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad_output * (gate + x * gate * (1 - gate))


def test_what_is_returned_anyway_costs_no_memory_to_keep():
    """sigmoid and the product are both computed again; the product is the output, so only sigmoid has to be saved."""
    (found,) = findings(Gated, torch.randn(64, 64, requires_grad=True), rule="recomputed-saved")
    assert found.evidence["ops"] == ["sigmoid", "mul"]
    assert "saved for nothing else" in found.message


class Teaching(Function):
    @staticmethod
    def forward(ctx, x, teacher):
        ctx.save_for_backward(x, teacher)
        return x * teacher

    @staticmethod
    def backward(ctx, grad_output):
        x, teacher = ctx.saved_tensors
        scaled = torch.exp(x)
        grad_teacher = grad_output * x * scaled / scaled
        return grad_output * teacher, grad_teacher


def test_of_two_gradients_of_one_shape_the_wasted_one_is_named_with_all_that_only_serves_it():
    inputs = torch.randn(128, 64, requires_grad=True), torch.randn(128, 64)
    (found,) = findings(Teaching, *inputs, rule="wasted-gradient")
    assert found.argument == "teacher"
    assert found.line == Teaching.backward.__code__.co_firstlineno + 4
