"""A function argument that reads tensors which are inputs, too: from a closure, or from the globals of its module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradsmith as gs

WEIGHT = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
LAYER = nn.Linear(3, 3).double()
STEPS = [0]


class Rerun(torch.autograd.Function):
    """Runs `function` again in backward, as checkpointing does."""

    factor = 1

    @staticmethod
    def forward(ctx, function, x, *weights):
        ctx.function = function
        ctx.save_for_backward(x, *weights)
        with torch.no_grad():
            return function(x)

    @classmethod
    def backward(cls, ctx, grad_output):
        x, *weights = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            grads = torch.autograd.grad(ctx.function(again), (again, *weights), grad_output)
        return None, grads[0], *(cls.factor * g for g in grads[1:])


class RerunTwice(Rerun):
    factor = 2


def reads_a_global(x):
    return torch.tanh(x @ WEIGHT)


def calls_a_neighbour(x):
    return reads_a_global(x).sin()


def reads_it_inside_a_lambda(x):
    return (lambda y: y @ WEIGHT)(x).tanh()


def calls_itself(x, depth=2):
    return x @ WEIGHT if depth == 0 else torch.tanh(calls_itself(x, depth - 1))


def reads_a_layer(x):
    return LAYER(x).tanh()


def counts(x):
    STEPS[0] += 1
    return torch.tanh(x @ WEIGHT)


def closes_over():
    weight = WEIGHT

    def recursive(x, depth=1):
        return x @ weight if depth == 0 else torch.tanh(recursive(x, depth - 1))

    return recursive


READERS = [
    (reads_a_global, (WEIGHT,)),
    (calls_a_neighbour, (WEIGHT,)),
    (reads_it_inside_a_lambda, (WEIGHT,)),
    (calls_itself, (WEIGHT,)),
    (counts, (WEIGHT,)),
    (closes_over(), (WEIGHT,)),
    (reads_a_layer, tuple(LAYER.parameters())),
]


def _x():
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("function", "weights"), READERS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_right_function_is_verified_and_a_wrong_one_refuted(function, weights):
    right = gs.check(Rerun, function, _x(), *weights, level="quick")
    assert right.subjects[0].verdict == "verified", right.findings
    wrong = gs.check(RerunTwice, function, _x(), *weights, level="quick")
    assert "wrong-gradient" in {f.rule for f in wrong.findings if f.severity == "error"}


def test_the_module_is_as_it_was_also_after_an_exception():
    def fails(x):
        STEPS[0] += 1
        raise KeyboardInterrupt if STEPS[0] > 3 else RuntimeError(str(WEIGHT.shape))

    before, values = dict(globals()), WEIGHT.detach().clone()
    gs.check(Rerun, reads_a_global, _x(), WEIGHT, level="quick")
    STEPS[0] = 3
    with pytest.raises(KeyboardInterrupt):
        gs.check(Rerun, fails, _x(), WEIGHT, level="quick")
    assert all(globals()[name] is value for name, value in before.items())
    assert torch.equal(WEIGHT, values)
