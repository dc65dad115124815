"""Where inputs come from, for check and profile alike, and what is said of them."""

from __future__ import annotations

import sys

import functions_without_inputs
import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs
from gradsmith.inputs.examples import Wish
from gradsmith.inputs.supply import supply
from gradsmith.lab import resolve


class Scaled(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(width, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x.sin() * self.w


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


def test_an_instance_that_nobody_declared_is_built_and_told(monkeypatch) -> None:
    inputs = {"Scaled": lambda: (torch.randn(3, 4, dtype=torch.float64, requires_grad=True),)}
    monkeypatch.setattr(sys.modules[__name__], "gradsmith_inputs", inputs, raising=False)
    report = gs.check(Scaled, level="quick")
    assert report.ok
    assert any("no instance is declared, and Scaled(width=4) was built" in note for note in report.notes)


def test_calls_whose_values_were_not_kept_leave_a_profile_to_guess() -> None:
    with gs.record() as tape:
        Double.apply(torch.ones(3, requires_grad=True))
    for call in tape.calls:
        call.examples.clear()
    assert supply(resolve(Double), Wish(as_recorded=True)).source == "guessed"
    assert "whose values are not kept" in supply(resolve(Double)).missing


def test_a_level_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(gs.GradsmithError, match="there are quick, standard, deep"):
        gs.check(Double, torch.ones(2, requires_grad=True), level="xyzzy")


def test_a_custom_operator_is_declared_in_the_module_that_defines_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(x: Tensor) -> Tensor:
        return x / 2

    operator = torch.library.custom_op("test_supply::halved", halved, mutates_args=())
    example = torch.ones(5, requires_grad=True)
    monkeypatch.setattr(sys.modules[__name__], "gradsmith_inputs", {"halved": lambda: (example,)}, raising=False)
    assert supply(resolve(operator)).source == "declared"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (functions_without_inputs.Abstract, "its forward is left to the classes derived from it"),
        (functions_without_inputs.ReturnsNothing, "its forward returns nothing"),
    ],
)
def test_where_there_is_nothing_to_run_that_is_said_and_nothing_is_tried(function, reason):
    assert supply(resolve(function)).missing == reason
