"""Custom Functions and operators that run inside a lambda, a partial, a helper, a layer or a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import functions_in_a_model as right
import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs

WRONG = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_output.mul_(x)
        return 2 * grad_output


class Round(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def helper(x, scale):
    return scale * Square.apply(x).sum(-1)


class Prepared(torch.nn.Module):
    def forward(self, x):
        return Square.apply(x.tanh())
"""


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)


@pytest.mark.parametrize("way", ["lambda", "partial", "helper", "module"])
def test_a_wrong_function_is_named_at_its_own_line_whatever_calls_it(
    way: str, load: Callable[[str], ModuleType]
) -> None:
    module = load(WRONG)
    ways: dict[str, Any] = {
        "lambda": lambda x: module.Square.apply(x).sum(),
        "partial": functools.partial(module.helper, scale=3.0),
        "helper": lambda x: module.helper(x, 2.0),
        "module": module.Prepared(),
    }
    direct = gs.check(module.Square, leaf(3, 4), level="quick")
    report = gs.check(ways[way], leaf(3, 4), level="quick")
    told = [(f.rule, f.line, f.function, f.severity) for f in direct.errors]
    assert ("inplace-grad", 14) in [(rule, line) for rule, line, _, _ in told]
    assert [(f.rule, f.line, f.function, f.severity) for f in report.errors] == told
    whole, inner = report.subjects
    assert (inner.name, inner.verdict, inner.inputs_from) == ("Square", "refuted", "recorded")
    assert whole.verdict == "unverified"
    assert whole.reason == "not checked: it calls Square, which is wrong; fix that first"


def test_what_a_declared_surrogate_runs_in_is_one_too(load: Callable[[str], ModuleType]) -> None:
    module = load(WRONG)
    report = gs.check(lambda x: 2 * module.Round.apply(x), leaf(3), level="quick")
    assert report.ok
    assert [(s.name, s.gradient) for s in report.subjects] == [("the lambda", "surrogate"), ("Round", "surrogate")]


OURS = {
    "reversed": lambda x: gs.ops.grad_reverse(2 * x),
    "scaled": lambda x: gs.ops.grad_scale(x.sin(), 0.3),
    "rounded": lambda x: gs.ops.round_through(2 * x),
    "clamped": lambda x: gs.ops.clamp_through(2 * x, -0.3, 0.3),
    "clipped": lambda x: gs.ops.grad_clip(2 * x, value=0.1),
    "disturbed": lambda x: gs.ops.grad_noise(2 * x, std=0.1),
    "stopped": lambda x: x * gs.ops.stop_gradient(x),
    "spiking": lambda x: gs.recurrent.spiking.Spike.apply(2 * x, 10.0),
}


@pytest.mark.parametrize("name", OURS)
def test_what_our_gradient_control_runs_in_is_a_surrogate(name: str) -> None:
    report = gs.check(OURS[name], leaf(3, 4), level="quick")
    assert report.ok, str(report)
    assert [(s.name, s.gradient) for s in report.subjects] == [("the lambda", "surrogate")]


def test_a_wrong_function_beside_our_gradient_control_is_found(load: Callable[[str], ModuleType]) -> None:
    module = load(WRONG)
    report = gs.check(lambda x: gs.ops.grad_reverse(module.Square.apply(x)), leaf(3, 4), level="quick")
    assert [s.verdict for s in report.subjects] == ["unverified", "refuted"]


def test_each_distinct_signature_is_one_example(load: Callable[[str], ModuleType]) -> None:
    from gradsmith.lab.inside import ran_inside
    from gradsmith.lab.subject.target import resolve

    module = load(WRONG)

    def model(x: Tensor) -> Tensor:
        with torch.no_grad():
            module.Round.apply(x)
        return module.Square.apply(x).sum() + module.Square.apply(x + 1).sum() + module.Square.apply(x[0]).sum()

    (found,) = ran_inside(resolve(model), (leaf(2, 3),), {}, 0)
    assert found.calls == 3
    assert [tuple(args[0].shape) for args, _ in found.examples.values()] == [(2, 3), (3,)]


def test_inputs_are_those_before_forward_wrote_into_them_and_lie_as_they_did() -> None:
    from gradsmith.lab.inside import ran_inside
    from gradsmith.lab.subject.target import resolve

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return 2 * grad_output

    x = leaf(4, 3)
    (found,) = ran_inside(resolve(lambda x: Doubled.apply((x * 1).t())), (x,), {}, 0)
    (((got,), _),) = found.examples.values()
    assert torch.equal(got, x.t()) and got.stride() == (1, 3)
    assert "forward" in vars(Doubled) and "Watch" not in Doubled.forward.__qualname__


def test_a_custom_operator_inside_is_a_subject() -> None:
    @torch.library.custom_op("gradsmith_inside::cube", mutates_args=())
    def cube(x: Tensor) -> Tensor:
        return x**3

    cube.register_autograd(
        lambda ctx, grad_output: 2 * grad_output * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    report = gs.check(lambda x: cube(x).sum(), leaf(3), level="quick")
    assert [(s.name, s.verdict) for s in report.subjects][1:] == [("gradsmith_inside::cube", "refuted")]


def test_nothing_inside_leaves_the_report_as_it_was() -> None:
    assert [s.name for s in gs.check(nn.Linear(3, 2), leaf(4, 3).float(), level="quick").subjects] == ["Linear"]


@pytest.mark.deep
def test_a_model_of_fifty_layers_has_each_of_its_functions_checked_once_and_is_left_as_it_was() -> None:
    model, x = right.Deep(), torch.randn(4, 6, requires_grad=True)
    model(x).sum().backward()
    model.layers[0].register_forward_hook(lambda *_: None)
    before = _everything(model, x)
    report = gs.check(model, x)
    assert sorted(s.name for s in report.subjects[1:]) == sorted(cls.__name__ for cls in right.SIX)
    assert report.ok
    _assert_same(before, _everything(model, x))


def test_a_small_model_is_left_as_it_was() -> None:
    model, x = right.Deep(width=3, layers=2), torch.randn(4, 3, requires_grad=True)
    model(x).sum().backward()
    before = _everything(model, x)
    report = gs.check(model, x, level="quick")
    assert [s.name for s in report.subjects] == ["Deep", "Swish", "Scaled"]
    _assert_same(before, _everything(model, x))


def _everything(model: nn.Module, x: Tensor) -> dict[str, Any]:
    tensors = {name: value.detach().clone() for name, value in model.state_dict().items()}
    grads = {name: (p.grad, p.grad.clone()) for name, p in model.named_parameters() if p.grad is not None}
    modules = {name: (m.training, dict(m._forward_hooks), getattr(m, "calls", 0)) for name, m in model.named_modules()}
    return {"tensors": tensors, "grads": grads, "modules": modules, "rng": torch.get_rng_state(), "x": x.grad}


def _assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert all(torch.equal(before["tensors"][name], value) for name, value in after["tensors"].items())
    assert before["grads"].keys() == after["grads"].keys()
    for name, (grad, value) in before["grads"].items():
        assert after["grads"][name][0] is grad and torch.equal(grad, value)
    assert before["modules"] == after["modules"]
    assert torch.equal(before["rng"], after["rng"]) and before["x"] is after["x"]
