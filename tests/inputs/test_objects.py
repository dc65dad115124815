"""Objects are guessed by their uses, shapes by what forward complains of; and what a guess cannot prove is a question."""

from __future__ import annotations

import ast
import importlib
import sys

import functions_of_objects as ops
import pytest
from torch import nn

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.inputs.lifting import lookup
from gradsmith.lab.subject.target import resolve
from gradsmith.source.uses import uses


def _verdict(function):
    return gs.check(function, level="quick").subjects[0]


@pytest.mark.parametrize("function", [ops.Reversible, ops.Listed])
def test_a_list_of_blocks_is_built_of_the_class_that_has_what_backward_calls(function):
    found = guess(resolve(function))
    assert [type(block) for block in found.args[1]] == [ops.Block, ops.Block]
    assert "Block(net=torch.nn.PReLU().double())" in found.code
    assert _verdict(function).verdict == "verified"


def test_what_is_spread_as_keywords_is_a_mapping():
    assert guess(resolve(ops.Reversible)).args[2] == {}


def test_a_module_is_followed_by_its_own_parameters():
    found = guess(resolve(ops.OfAModule))
    _, module, *weights = found.args
    assert isinstance(module, nn.Module)
    assert [w is p for w, p in zip(weights, module.parameters())] == [True]
    assert found.code == ""  # no expression can say whose parameters they are


def test_a_function_of_the_factory_is_guessed_where_it_is_called():
    made = lookup(sys.modules[ops.__name__], "made_of.<locals>.Made")
    assert guess(resolve(made)).works


def test_classes_that_raise_when_asked_for_their_instances_end_no_search():
    assert guess(resolve(ops.ByProtocol)).works


def test_a_module_without_parts_is_no_object_to_try():
    assert isinstance(guess(resolve(ops.ByLifting)).args[1], ops.Lifting)


def test_sizes_come_from_the_message_of_the_operation_that_raised():
    x, one, other, bias = guess(resolve(ops.Quarter)).args
    assert x.shape[1] == 4 * one.shape[0] == 4 * other.shape[0]
    assert bias.shape == (2 * one.shape[1],)


def test_what_only_backward_asks_of_an_object_is_not_the_fault_of_the_function():
    assert not guess(resolve(ops.Told)).works


def test_a_slow_machine_tries_as_many_guesses():
    quick, slow = (guess(resolve(function), attempts=64) for function in (ops.Unsuitable, ops.SlowlyUnsuitable))
    assert quick.attempts == slow.attempts > 30


def test_uses_follow_a_value_through_ctx_loops_and_calls():
    first, second = ast.parse(
        "def forward(ctx, x, blocks, f, table, pair):\n"
        "    ctx.kept = list(blocks)\n"
        "    a, b = pair\n"
        "    return [f(x, a) for i, block in enumerate(blocks)], wrap(b, **table)\n"
        "def backward(ctx, g):\n"
        "    for (one, two), n in zip(reversed(ctx.kept), range(3)):\n"
        "        one.undo(two(g))\n"
    ).body
    found = uses([(first, "ctx"), (second, "ctx")])
    assert found["f"].called == 2
    assert found["table"].mapping
    assert len(found["pair"].places) == 2
    assert found["pair"].places[1].passed == [("wrap", 0)]
    assert found["blocks"].each.places[0].attributes == {"undo"}
    assert found["blocks"].each.places[1].called == 1


BASE = """
import torch
from torch import nn


class Slope(nn.Module):
    def __init__(self, alpha=1.5):
        super().__init__()
        self.alpha = alpha

    def slope(self, x):
        raise NotImplementedError


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape: Slope):
        ctx.save_for_backward(x)
        ctx.shape = shape
        return (x > 0).to(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.shape.slope(x), None
"""
COMPLETE = """
from .base import Slope


class Rational(Slope):
    def slope(self, x):
        return 1 / (1 + (self.alpha * x) ** 2)
"""


@pytest.mark.parametrize(
    ("more", "built"), [("", "Rational"), ("\nprint('a script')\n", "Slope"), ("\nmade = print('a script')\n", "Slope")]
)
def test_of_an_abstract_class_one_is_built_that_completes_it(tmp_path, monkeypatch, more, built):
    """It is looked for in the files beside it; not in those that would do something."""
    package = f"slopes_{len(more)}"
    (tmp_path / package).mkdir()
    for name, text in (("__init__", ""), ("base", BASE), ("rational", COMPLETE + more)):
        (tmp_path / package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    spike = importlib.import_module(f"{package}.base").Spike
    found = guess(resolve(spike))
    assert type(found.args[1]).__name__ == built
    assert (not found.trouble) is (built == "Rational")


def test_the_fields_of_a_configuration_are_read_where_its_class_stands():
    found = guess(resolve(ops.Planned))
    assert found.works and not found.trouble
    plan = found.args[1]
    assert isinstance(plan, ops.Plan)
    assert callable(plan.operator) and not list(plan.terms) and plan.rtol < 1e-3
    assert _verdict(ops.Planned).verdict == "verified"
