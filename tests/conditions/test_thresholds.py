"""Branches of forward that no element of the example reaches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import gradsmith as gs


def made(compute, slope):
    """A Function of one input, with this value and this derivative."""

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return compute(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * slope(x)

    return Made


def told(compute, slope, x):
    chosen = ["value-dependent", "assumes"]
    report = gs.check(made(compute, slope), x.double().requires_grad_(), isolate=False, select=chosen)
    return [(f.rule, f.severity) for f in report.findings]


@pytest.fixture
def x():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def one(x):
    return torch.ones_like(x)


ERROR, ASSUMED = ("value-dependent", "error"), ("assumes", "warning")


@pytest.mark.parametrize(
    ("compute", "slope", "expected"),
    [
        (lambda x: x.clamp(0, 6), lambda x: (x > 0).to(x), ASSUMED),
        (F.relu6, lambda x: (x > 0).to(x), ASSUMED),
        (lambda x: torch.where(x > 4, 2 * x, x), one, ERROR),
        (lambda x: F.hardswish(x), lambda x: x / 3 + 0.5, ERROR),
        (lambda x: torch.sin(torch.clamp(x.clone(), min=-7.0)), torch.cos, ASSUMED),
        (lambda x: x * F.relu6(x + 3) / 6, lambda x: torch.where(x < 3, x / 3 + 0.5, one(x)), ASSUMED),
        (lambda x: (1 - x / 4).clamp(max=2), lambda x: -one(x) / 4, ASSUMED),
        (lambda x: F.relu(2 * x - 9), lambda x: 0 * x, ERROR),
        (lambda x: F.relu(x * x - 9), lambda x: 0 * x, ERROR),
    ],
    ids=["clamp", "relu6", "where", "hardswish", "of a copy", "shifted", "turned", "scaled", "no line"],
)
def test_a_forgotten_bound_is_named(x, compute, slope, expected):
    """The flat side of a clamp, where the slope goes on, is an assumption; any other branch is wrong."""
    assert expected in told(compute, slope, x)


@pytest.mark.parametrize(
    ("compute", "slope"),
    [
        (lambda x: x.clamp(0, 6), lambda x: ((x > 0) & (x < 6)).to(x)),
        (lambda x: torch.where(x > 4, 2 * x, x), lambda x: 1 + (x > 4).to(x)),
        (lambda x: F.relu6(x + 3), lambda x: ((x > -3) & (x < 3)).to(x)),
    ],
    ids=["clamp", "where", "shifted"],
)
def test_what_is_right_is_silent(x, compute, slope):
    assert told(compute, slope, x) == []


@pytest.mark.parametrize(
    ("compute", "slope"),
    [
        (torch.exp, lambda x: torch.exp(x.clamp(max=8))),  # a bound that only backward has
        (lambda x: torch.exp(x.clamp(-15, 15)), lambda x: torch.exp(x.clamp(-15, 15))),  # a guard
        (lambda x: x.clamp(-8, 7), one),  # straight through
        (lambda x: 1 / (x * x).clamp(min=1e-6), lambda x: -2 / x**3),  # an epsilon
        (lambda x: torch.exp((x * 20 + 1).clamp(max=80)), lambda x: 20 * torch.exp(x * 20 + 1)),  # a guard
    ],
    ids=["only backward", "guard", "straight through", "epsilon", "scaled guard"],
)
def test_what_may_be_meant_is_no_error(x, compute, slope):
    assert ERROR not in told(compute, slope, x)


def test_beyond_a_probability_there_is_nothing():
    p = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
    assert ERROR not in told(lambda p: torch.log(p.clamp(1e-3, 1 - 1e-3)), lambda p: 1 / p, p)


def test_values_of_one_sign_may_be_all_that_is_meant():
    ages = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)) + 1
    assert told(lambda x: x.clamp(max=9).log(), lambda x: 1 / x, ages) == [ASSUMED]
