"""Inputs that are functions: guessed from how the body calls them, and no accusation rests on one that may not fit."""

from __future__ import annotations

from typing import Any

import functions_of_functions as ops
import pytest
import torch
from torch.autograd import Function

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.clues import clues
from gradsmith.inputs.guess.functions import APPLY, MIXED, PRODUCT, TEST, Written, likely, others
from gradsmith.lab.explore.tape import NoEnd, stopped_after
from gradsmith.lab.subject.target import resolve


@pytest.mark.parametrize("function", [ops.Branch, ops.Cumulate, ops.Loop], ids=lambda f: f.__name__)
def test_a_right_function_of_functions_is_verified(function):
    report = gs.check(function, isolate=False)
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


def test_what_counts_the_starred_values_adds_up():
    found = {clue.name: clue.counting for clue in clues(resolve(ops.Cumulate))}
    assert found == {"combine_fn": False, "num_xs": True, "num_extra": True, "operands": False}
    _, number, extra, *operands = guess(resolve(ops.Cumulate)).args
    assert number + extra == len(operands)


def test_a_function_that_is_called_with_another_one_applies_it():
    found = {clue.name: clue.applies for clue in clues(resolve(ops.Solved))}
    assert found == {"solver": True, "step_fn": False, "x": False}
    assert guess(resolve(ops.Solved)).args[0] is APPLY


def test_a_guessed_loop_that_does_not_end_is_stopped():
    endless = Written("lambda x: True", lambda x: True)
    with pytest.raises(NoEnd), stopped_after(100):
        ops.Loop.apply(endless, MIXED, torch.randn(3))


def test_the_name_says_what_a_function_is_for():
    assert next(likely("combine_fn", 0, applies=False)) is PRODUCT
    assert next(likely("cond_fn", 1, applies=False)) is TEST
    assert next(likely("body_fn", 1, applies=False)) is MIXED


def test_a_tuple_is_written_where_a_tuple_is_returned():
    pair = MIXED.as_tuple()
    x, y = torch.randn(3), torch.randn(3)
    (result,) = pair(x, y)
    (pasted,) = eval(pair.code)(x, y)
    assert torch.equal(result, pasted)
    assert all(other.tupled or other.as_tuple() is other for other in others(pair, "f"))
    assert not list(others(TEST, "cond_fn"))


def test_a_stop_leaves_gradients_as_they_were():
    @torch.no_grad()
    def without_end():
        while True:
            with torch.enable_grad(), torch.no_grad():
                torch.ones(2).sum()

    for limit in range(1, 12):
        with pytest.raises(NoEnd), stopped_after(limit):
            without_end()
        assert torch.is_grad_enabled()


weight = torch.tensor([2.0, 3.0, 4.0], dtype=torch.float64, requires_grad=True)


def scaled_by_the_global(x: torch.Tensor) -> torch.Tensor:
    return x * weight


class Calls(Function):
    """Calls a function that reads a tensor of its module, which is an input, too."""

    @staticmethod
    def forward(ctx: Any, run: Any, x: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        ctx.run = run
        ctx.save_for_backward(x, own)
        return run(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, own = ctx.saved_tensors
        return None, grad * own, grad * x


def errors(report: gs.Report) -> list[str]:
    return [f.rule for f in report.findings if f.severity == "error"]


def test_a_function_argument_may_read_a_global_tensor_that_is_an_input() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert not errors(gs.check(Calls, scaled_by_the_global, x, weight))
