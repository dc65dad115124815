"""A guess may be what is wrong: then nothing is proven, and the reader is asked."""

from __future__ import annotations

import lenient_functions as ops
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.candidates import Sizes, candidates
from gradsmith.inputs.guess.clues import Clue, clues
from gradsmith.inputs.guess.proposals import FRAMES, made
from gradsmith.lab.subject.target import resolve


def test_as_many_values_as_the_body_reads():
    assert len(guess(resolve(ops.FirstOfMany)).args) == 1
    assert gs.check(ops.FirstOfMany).subjects[0].verdict == "verified"


def test_defaults_without_a_gradient_are_not_passed():
    assert [clue.name for clue in clues(resolve(ops.RareOption))] == ["x", "weight"]
    assert gs.check(ops.RareOption).subjects[0].verdict == "verified"


@pytest.mark.parametrize("name", ["index", "perm", "ids", "mask", "weight", "eps"])
def test_every_proposal_can_be_made(name):
    generator = torch.Generator().manual_seed(0)
    for gradient in (True, False, None):
        for proposal in candidates(Clue(name, gradient=gradient), Sizes()):
            for frame in FRAMES:
                made(proposal, frame, torch.float64, generator)


def test_what_is_kept_on_ctx_is_a_number_first():
    found = guess(resolve(ops.Root))
    assert isinstance(found.args[1], float)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (ops.Turned, "only backward reads 'undo'"),
        (ops.Root, "'alpha' is 1.5 or 2.5"),
        (ops.SpectralRoot, "positive definite"),
        (ops.Mix, "backward raises on the guessed inputs"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_guess_that_breaks_what_the_author_means_accuses_nobody(function, words):
    report = gs.check(function)
    assert report.subjects[0].verdict == "unverified"
    assert words in report.subjects[0].reason
    assert not [f for f in report.findings if f.severity == "error"]


def test_declared_inputs_that_fit_are_verified_at_other_sizes_too():
    order = torch.tensor([2, 0, 3, 1])
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    report = gs.check(ops.Turned, x, order, order.argsort())
    assert report.subjects[0].verdict == "verified"
    assert not [f for f in report.findings if f.severity == "error"]


def test_a_wrong_gradient_is_still_named():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            ctx.save_for_backward(x)
            return x.square() * alpha

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x * ctx.alpha, None

    assert gs.check(Broken).subjects[0].verdict == "refuted"


def severities(report):
    return {f.severity for f in report.findings if f.rule == "wrong-gradient"}


@pytest.mark.parametrize(
    ("function", "severity"),
    [
        (ops.FactoredForm, "info"),  # it calls what is only defined for symmetric matrices
        (ops.QuadraticForm, "warning"),  # that its docstring speaks of them is no evidence
        (ops.TransposeForgotten, "warning"),  # a forgotten transposition looks the same
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_only_symmetry_makes_right_is_never_silence(function, severity):
    report = gs.check(function, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert severities(report) == {severity}


def test_a_function_that_never_makes_it_right_is_no_excuse():
    report = gs.check(ops.Mapped, level="quick")
    assert report.subjects[0].verdict == "refuted"


def test_functions_that_have_to_fit_each_other_leave_a_warning():
    report = gs.check(ops.Slope, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert "guessed function" in report.subjects[0].reason
    assert severities(report) == {"warning"}


def test_the_authors_default_is_in_range():
    assert gs.check(ops.RootByDefault, level="quick").subjects[0].verdict == "refuted"


def test_an_input_only_backward_reads_does_not_excuse_a_sign():
    # Guessed indices run backwards, and so undo each other: the sign is all that is wrong.
    class Flipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index, undo_index):
            ctx.save_for_backward(undo_index)
            return x.gather(-1, index)

        @staticmethod
        def backward(ctx, grad_output):
            (undo_index,) = ctx.saved_tensors
            return -grad_output.gather(-1, undo_index), None, None

    report = gs.check(Flipped, level="quick")
    assert report.subjects[0].verdict == "refuted"


def test_values_that_forward_warns_about_are_replaced():
    matrix, _ = guess(resolve(ops.Iterated)).args
    assert bool((torch.linalg.eigvals(matrix.detach()).real > 0).all())
    assert gs.check(ops.Iterated, isolate=False, level="quick").subjects[0].verdict != "refuted"


def test_an_attribute_that_only_a_wrong_guess_lacks_accuses_nobody():
    assert not any(f.rule == "backward-raised" for f in gs.check(ops.Unlooked).findings)


def test_an_attribute_that_nothing_has_is_an_error():
    (finding,) = [f for f in gs.check(ops.Misspelt).findings if f.rule == "backward-raised"]
    assert finding.severity == "error"


@pytest.mark.parametrize("function", [ops.Bilinear, ops.PerChannel])
def test_shapes_that_the_code_writes_down(function):
    found = guess(resolve(function))
    assert found.attempts <= 5
    assert gs.check(function).subjects[0].verdict == "verified"


def test_a_fixed_point_is_right_where_there_is_one():
    report = gs.check(ops.AtRest)
    assert report.subjects[0].verdict in ("verified", "unverified")
    assert not [f for f in report.findings if f.rule == "wrong-gradient" and f.severity != "info"]
