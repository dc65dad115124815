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
    report = gs.check(made(compute, slope), x.double().requires_grad_(), isolate=False, select=["value-dependent"])
    return [(f.severity, f.message) for f in report.findings]


@pytest.fixture
def x():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def one(x):
    return torch.ones_like(x)


@pytest.mark.parametrize(
    ("compute", "slope", "bound"),
    [
        (lambda x: x.clamp(0, 6), lambda x: (x > 0).to(x), "above 6"),
        (F.relu6, lambda x: (x > 0).to(x), "above 6"),
        (lambda x: torch.where(x > 4, 2 * x, x), one, "above 4"),
        (lambda x: F.hardswish(x), lambda x: x / 3 + 0.5, "above 3"),
        (lambda x: torch.sin(torch.clamp(x.clone(), min=-7.0)), torch.cos, "below -7"),
        (lambda x: x * F.relu6(x + 3) / 6, lambda x: torch.where(x < 3, x / 3 + 0.5, one(x)), "below -3"),
        (lambda x: (1 - x / 4).clamp(max=2), lambda x: -one(x) / 4, "below -4"),
        (lambda x: F.relu(2 * x - 9), lambda x: 0 * x, "above 4.5"),
    ],
    ids=["clamp", "relu6", "where", "hardswish", "of a copy", "shifted", "turned", "scaled"],
)
def test_a_forgotten_bound_is_named(x, compute, slope, bound):
    ((severity, message),) = told(compute, slope, x)
    assert severity == "error"
    assert f"with 'x' {bound}, where forward takes another branch" in message


@pytest.mark.parametrize(
    ("compute", "slope"),
    [
        (lambda x: x.clamp(0, 6), lambda x: ((x > 0) & (x < 6)).to(x)),
        (lambda x: torch.where(x > 4, 2 * x, x), lambda x: 1 + (x > 4).to(x)),
        (torch.exp, lambda x: torch.exp(x.clamp(max=8))),  # a bound that only backward has is meant
        (lambda x: torch.exp(x.clamp(-15, 15)), lambda x: torch.exp(x.clamp(-15, 15))),  # a guard
        (lambda x: x.clamp(-8, 7), one),  # straight through
        (lambda x: 1 / (x * x).clamp(min=1e-6), lambda x: -2 / x**3),  # an epsilon
        (lambda x: F.relu6(x + 3), lambda x: ((x > -3) & (x < 3)).to(x)),
        (lambda x: F.relu(x * x - 9), lambda x: 0 * x),  # no line
        (lambda x: torch.exp((x * 20 + 1).clamp(max=80)), lambda x: 20 * torch.exp(x * 20 + 1)),  # a guard
    ],
    ids=[
        "clamp",
        "where",
        "only backward",
        "guard",
        "straight through",
        "epsilon",
        "shifted",
        "no line",
        "scaled guard",
    ],
)
def test_what_is_right_or_meant_is_silent(x, compute, slope):
    assert told(compute, slope, x) == []


def test_beyond_a_probability_there_is_nothing():
    p = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
    assert told(lambda p: torch.log(p.clamp(1e-3, 1 - 1e-3)), lambda p: 1 / p, p) == []


def test_values_of_one_sign_may_be_all_that_is_meant():
    ages = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)) + 1
    ((severity, _),) = told(lambda x: x.clamp(max=9).log(), lambda x: 1 / x, ages)
    assert severity == "warning"
