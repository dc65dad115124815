"""Tensor subclasses among inputs and outputs: judged by the plain tensors they are made of."""

from __future__ import annotations

import functions_of_subclasses as ops
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.proposals import FRAMES, made
from gradsmith.inputs.guess.subclasses import classes_of, recipes
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import resolve
from gradsmith.lab.subject.wrapped import Wrapped, is_wrapper, put_together, values_of

X = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
MASK = torch.tensor([[True, False, True, True]] * 3)


@pytest.mark.parametrize("function", [ops.Hold, ops.Release, ops.Totals, ops.Rename], ids=lambda f: f.__name__)
def test_a_right_function_of_subclasses_is_not_accused(function):
    report = gs.check(function, isolate=False, level="quick")
    assert report.subjects[0].inputs_from == "guessed"
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


def test_a_wrong_one_is():
    report = gs.check(ops.ReleaseTwice, isolate=False)
    assert report.subjects[0].verdict == "refuted"
    (finding,) = [f for f in report.findings if f.rule == "wrong-gradient"]
    assert finding.argument == "held[0]"


def test_inputs_of_a_subclass_can_be_declared():
    assert gs.check(ops.Release, gs.wrapped(ops.Held, X, MASK), level="quick").subjects[0].verdict == "verified"
    assert gs.check(ops.ReleaseTwice, gs.wrapped(ops.Held, X, MASK)).subjects[0].verdict == "refuted"


def test_guessed_code_can_be_pasted():
    report = gs.check(ops.Release, isolate=False, level="quick")
    pasted = eval(report.subjects[0].inputs_code, {"torch": torch, "gs": gs, "Held": ops.Held})
    assert isinstance(pasted[0], Wrapped)
    assert gs.check(ops.Release, *pasted, level="quick").subjects[0].verdict == "verified"


def test_gradients_reach_the_parts_and_no_masked_number():
    run = forward(resolve(ops.Release), Arguments.of((gs.wrapped(ops.Held, X, MASK),), names=("held",)))
    (grad,) = [g for g in run.gradients(run.ones()).values() if g is not None]
    assert torch.equal(grad, MASK.double())


def test_every_call_gets_the_subclass_itself():
    (held,) = put_together((gs.wrapped(ops.Held, X, MASK),))
    assert type(held) is ops.Held
    assert held.requires_grad
    with torch.no_grad():
        (plain,) = put_together((gs.wrapped(ops.Held, X, MASK),))
    assert not plain._data.requires_grad


def test_a_subclass_with_numbers_of_its_own_is_no_wrapper():
    named = ops.Rename.apply(X)
    named.scale = torch.ones(1)
    assert not is_wrapper(named)
    assert values_of(named)[0] is named
    assert is_wrapper(ops.Held(X.detach(), MASK))


def test_only_classes_that_the_source_names_are_tried():
    assert classes_of(resolve(ops.Release)) == [ops.Held]
    assert classes_of(resolve(ops.Totals)) == [ops.Packed]
    assert guess(resolve(ops.Hold)).args[0].shape == (3, 4)


def test_a_recipe_fits_every_frame_that_has_its_shapes():
    (recipe, *_) = recipes(ops.Packed)
    generator = torch.Generator().manual_seed(0)
    for part in recipe.parts:
        made(part, FRAMES[1], torch.float64, generator)
    values, offsets = (made(part, FRAMES[0], torch.float64, generator) for part in recipe.parts)
    assert offsets.tolist() == [0, 1, len(values)]


@pytest.mark.parametrize("function", [ops.Round, ops.Unround], ids=lambda f: f.__name__)
def test_what_consists_of_integers_is_not_taken_apart(function):
    rounded = ops.Rounded(torch.ones(3, 4, dtype=torch.int32), torch.tensor(0.5))
    assert not is_wrapper(rounded)
    assert gs.check(function, isolate=False, level="quick").subjects[0].verdict != "refuted"
