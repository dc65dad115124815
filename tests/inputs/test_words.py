"""What authors write down, and what errors say, becomes a guess."""

from __future__ import annotations

import functions_with_words as ops
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.candidates import Sizes, candidates
from gradsmith.inputs.guess.clues import Clue, clues
from gradsmith.inputs.guess.documented import documented
from gradsmith.inputs.guess.hints import hints, missing
from gradsmith.inputs.guess.proposals import Proposal
from gradsmith.lab.subject.target import resolve


@pytest.mark.parametrize(
    "function", [ops.Interpolate, ops.Commented, ops.Trace, ops.Distilled], ids=lambda f: f.__name__
)
def test_they_are_verified_as_they_are(function):
    report = gs.check(function, level="quick")
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


def test_dimensions_of_one_name_have_one_size():
    features, indices, weight = guess(resolve(ops.Interpolate)).args
    assert indices.shape == weight.shape
    assert indices.shape[0] == features.shape[0]
    assert len({*features.shape, indices.shape[1]}) == 4
    assert indices.dtype == torch.int64


def test_comments_behind_parameters_are_read():
    found = {clue.name: clue.dims for clue in clues(resolve(ops.Commented))}
    assert found == {"points": ("n", "3"), "rotation": ("3", "3"), "centre": ("3",)}


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("x (torch.Tensor): Shape: (batch_size * seq_len, hidden).", ("batch_size*seq_len", "hidden")),
        (":param x: a tensor of shape [B, H, N, D]", ("B", "H", "N", "D")),
        ("x: B x N points as (B x N x 3)", ("B", "N", "3")),
        ("- `x`: labels, shape: (N)", ("N",)),
        ("x (Tensor, optional): the input (see above)", None),
        ("x: float tensor\ny: (B, N)", None),
        ("x: of a model, (4096, 32000)", None),
        ("the x (B, N) in a sentence", None),
    ],
)
def test_shapes_in_prose(text, dims):
    function = type("F", (), {"__doc__": text})
    assert documented(function, ["x"]).get("x") == dims


def test_batches_are_even_and_products_come_apart():
    sizes = Sizes()
    assert sizes.form(("batch*time", "d")) == "6x4"
    assert sizes.spread(("batch*time", "d")) == "2x3x4"


def test_a_flag_is_never_tried_as_a_number():
    values = [p.value for p in candidates(Clue("compiled", default=True, gradient=False), Sizes()) if not p.is_tensor]
    assert values == [True, False]


def raised(function, *args):
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


def test_the_line_tells_which_none_was_read():
    def forward(x, weight, bias):
        return x + (
            bias
            + 1
        )  # fmt: skip

    error = raised(forward, 1.0, None, None)
    assert missing(error, ["x", "weight", "bias"], [1.0, None, None]) == [2]


def test_an_error_of_types_is_a_hint_for_what_has_no_gradient():
    x, index = torch.randn(3), torch.rand(2)
    error = raised(lambda x, index: x[index], x, index)
    chosen = [Proposal(0, "floating", "x", gradient=True), Proposal(0, "floating", "x")]
    found = hints(error, ["x", "index"], (x, index), chosen, frozenset({0, 1}))
    assert [(h.position, h.what) for h in found] == [(1, "integer")]
