"""Guessed inputs: found for what people write, said to be guessed, and never an accusation they cannot carry."""

from __future__ import annotations

import functions_without_inputs as ops
import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.clues import clues
from gradsmith.lab.subject.target import resolve

GUESSABLE = [ops.Linear, ops.Shaped, ops.Reduce, ops.LogDet, ops.Attention, ops.Gather, ops.Edges]


@pytest.mark.parametrize("function", GUESSABLE, ids=lambda f: f.__name__)
def test_a_guess_makes_every_gradient_visible(function):
    found = guess(resolve(function))
    assert found.works, found.errors
    assert not found.trouble
    inputs = [a for a in found.args if isinstance(a, Tensor) and a.requires_grad]
    out = function.apply(*found.args)
    for grad in torch.autograd.grad(out, inputs, torch.randn_like(out)):
        assert bool(torch.isfinite(grad).all())
        assert bool(grad.abs().gt(0).any())


def test_sizes_are_distinct_and_precision_is_double():
    x, weight, bias = guess(resolve(ops.Linear)).args
    assert x.ndim == 2
    assert len({x.shape[0], x.shape[1], weight.shape[0]}) == 3
    assert {t.dtype for t in (x, weight, bias)} == {torch.float64}


def test_jaxtyping_names_become_sizes_that_fit():
    x, w, pick = guess(resolve(ops.Shaped)).args
    assert x.shape[1] == w.shape[0]
    assert pick.shape == (x.shape[0],)
    assert pick.dtype == torch.int64
    assert not pick.requires_grad


def test_strings_are_taken_from_what_the_body_compares_with():
    assert guess(resolve(ops.Reduce)).args[2] in ("add", "average")


def test_the_rank_the_body_unpacks_is_respected():
    found = {clue.name: clue for clue in clues(resolve(ops.Attention))}
    assert found["q"].ndim == 4
    assert guess(resolve(ops.Attention)).args[0].ndim == 4


def test_no_gradient_is_asked_for_where_backward_returns_none():
    found = {clue.name: clue.gradient for clue in clues(resolve(ops.Reduce))}
    assert found == {"x": True, "dim": False, "mode": False}


def test_the_report_says_guessed_and_gives_code_that_runs():
    report = gs.check(ops.Linear, level="quick")
    subject = report.subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("verified", "guessed")
    assert any(
        "inputs were guessed; keep or correct them, or let --write-inputs write them: gradsmith_inputs = " in note
        for note in report.notes
    )
    again = eval(subject.inputs_code)
    assert gs.check(ops.Linear, *again, level="quick").ok


def test_a_wrong_gradient_is_refuted_on_guessed_inputs():
    report = gs.check(ops.Doubled, level="quick")
    assert report.subjects[0].verdict == "refuted"
    assert {f.argument for f in report.errors} == {"weight"}


def test_nothing_works_says_what_was_tried_and_what_to_write():
    subject = gs.check(ops.Hopeless, level="quick").subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("unverified", "none")
    assert "guesses tried" in subject.reason
    assert 'write gradsmith_inputs = {"Hopeless": lambda: (x, config,)}' in subject.reason


def test_symmetry_taken_for_granted_is_asked_about_not_accused():
    report = gs.check(ops.BilinearOfSymmetric, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert "right where 'matrix' is symmetric" in report.subjects[0].reason
    assert not [f for f in report.errors if f.rule == "wrong-gradient"]


def test_modules_are_built_and_get_a_time_dimension():
    report = gs.check(ops.Cell, level="quick")
    assert report.subjects[0].verdict == "verified"
    code = report.subjects[0].inputs_code
    assert code.startswith("(Cell(input_size=4, hidden_size=6), torch.randn(2, 12, 4")


def test_declared_module_classes_start_with_an_instance(monkeypatch):
    declared = {"Cell": lambda: (ops.Cell(3, 5), torch.randn(2, 4, 3, dtype=torch.float32))}
    monkeypatch.setattr(ops, "gradsmith_inputs", declared, raising=False)
    subject = gs.check(ops.Cell, level="quick").subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("verified", "declared")


def test_a_declared_example_that_fails_is_the_users_error_with_its_line(monkeypatch):
    declared = {"Linear": lambda: (1 / 0,)}
    monkeypatch.setattr(ops, "gradsmith_inputs", declared, raising=False)
    line = declared["Linear"].__code__.co_firstlineno
    reason = gs.check(ops.Linear, level="quick").subjects[0].reason
    assert reason == f"the declared inputs (line {line}) raise ZeroDivisionError: division by zero"


def test_recorded_inputs_come_before_guessed_ones():
    with gs.record() as tape:
        ops.Linear.apply(torch.randn(2, 3, requires_grad=True), torch.randn(5, 3), None)
    assert gs.check(ops.Linear, level="quick").subjects[0].inputs_from == "recorded"
    del tape
