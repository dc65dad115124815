"""Functions nobody needs, and Functions that only look like it."""

from __future__ import annotations

import pytest

from gradsmith.linting import lint_source

TEMPLATE = """
import torch
import torch.nn.functional as F


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}

    @staticmethod
    def backward(ctx, g):
        {backward}
"""


def rules_of(forward: str, backward: str) -> set[str]:
    text = TEMPLATE.format(forward=forward, backward=backward)
    return {f.rule for f in lint_source(text, select=["pointless-wrapper", "autograd-suffices"], debug=True).findings}


SAVE_X = "ctx.save_for_backward(x); "
TAKE_X = "x, = ctx.saved_tensors; "


@pytest.mark.parametrize(
    ("forward", "backward", "found"),
    [
        (
            "y = x.exp(); ctx.save_for_backward(y); return y",
            "y, = ctx.saved_tensors; return g * y",
            "pointless-wrapper",
        ),
        (SAVE_X + "return x.clamp(min=0)", TAKE_X + "r = g.clone(); r[x < 0] = 0; return r", "pointless-wrapper"),
        (SAVE_X + "return torch.sqrt(x)", TAKE_X + "return g / (2 * torch.sqrt(x))", "pointless-wrapper"),
        (SAVE_X + "return x * x", "return g * 2 * ctx.saved_tensors[0]", "pointless-wrapper"),
        (SAVE_X + "return torch.cos(x) + x", TAKE_X + "return g * (1 - torch.sin(x))", "autograd-suffices"),
        ("return 2 * x + 1", "return g * 2", "autograd-suffices"),
    ],
)
def test_found(forward: str, backward: str, found: str) -> None:
    assert found in rules_of(forward, backward)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("return x.sign()", "return g"),  # a straight-through estimator
        ("return (x > 0).float()", "return g * 0.5"),
        ("return x", "return -g"),  # gradient reversal
        ("return x", "return g.clamp(-1, 1)"),
        (SAVE_X + "return torch.exp(x)", TAKE_X + "return g * torch.exp(x.clamp(-15, 15))"),  # bounds are its purpose
        (SAVE_X + "return x.exp()", TAKE_X + "return g * x"),  # wrong, and other rules say so
        (SAVE_X + "return x.sum()", TAKE_X + "return g.expand_as(x)"),
        (SAVE_X + "return helper(x)", TAKE_X + "return g * x"),
        (SAVE_X + "return torch.tanh(x) * torch.sin(x) * x", TAKE_X + "return g * slope(x)"),
    ],
)
def test_silent(forward: str, backward: str) -> None:
    assert rules_of(forward, backward) == set()
