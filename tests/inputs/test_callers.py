"""What callers in the same module say about a Function's inputs."""

from __future__ import annotations

import functions_with_callers as ops
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.callers import calls_of
from gradsmith.inputs.guess.clues import clues
from gradsmith.lab.subject.target import resolve


@pytest.mark.parametrize("function", [ops.Reorder, ops.Blend, ops.Between], ids=lambda f: f.__name__)
def test_what_callers_pass_is_enough_to_verify(function):
    report = gs.check(function, isolate=False, level="quick")
    assert report.subjects[0].inputs_from == "guessed"
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


def test_and_to_refute():
    report = gs.check(ops.ReorderWrong, isolate=False)
    assert report.subjects[0].verdict == "refuted"
    # A Plan cannot be pasted: the note says where it comes from, and no more.
    assert report.subjects[0].inputs_code == ""
    assert any(note.endswith("as reorder_wrong passes them on; declare inputs to keep them") for note in report.notes)


def test_what_a_function_was_given_is_kept():
    x, plan = guess(resolve(ops.Reorder)).args
    assert isinstance(plan, ops.Plan)
    assert x.is_leaf
    assert x.requires_grad
    assert len(plan.order) == len(x)
    assert torch.equal(ops.Reorder.apply(x, plan), ops.reorder(x))


def test_a_layer_is_built_and_called():
    found = guess(resolve(ops.Blend))
    assert found.args[1]["kind"] == "blend"
    assert found.caller.startswith("BlendLayer(")


def test_defaults_of_a_caller_are_values_to_try():
    found = {clue.name: set(clue.constants) for clue in clues(resolve(ops.Between))}
    assert found == {"x": set(), "p0": {1.25}, "p1": {"tanh"}}
    assert [call.function.name for call in calls_of(ops.Between)] == ["between"]


def test_callers_that_do_more_than_compute_are_not_called():
    ops.CALLED.clear()
    assert gs.check(ops.Watched, isolate=False).subjects[0].verdict == "unverified"
    assert ops.CALLED == []


def test_the_parameters_of_a_module_that_is_passed_on_stay_its_own():
    _, layer, *given = guess(resolve(ops.Twisted)).args
    assert all(a is b for a, b in zip(given, layer.parameters(), strict=True))
    assert gs.check(ops.Twisted, isolate=False, level="quick").subjects[0].verdict == "verified"
