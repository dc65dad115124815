"""Gradient control: values pass, gradients are changed as asked, under compile and vmap, too; check knows the kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith import ops

X = torch.tensor([[-1.6, 0.3, 2.4], [0.7, -0.2, 1.1]], dtype=torch.float64)
G = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.1, -4.0]], dtype=torch.float64)

# name -> (op, its value, its gradient for grad_output G)
CONTROLS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor, Tensor | None]] = {
    "stop": (ops.stop_gradient, X, None),
    "scale": (lambda x: ops.grad_scale(x, 0.5), X, 0.5 * G),
    "scale by tensor": (lambda x: ops.grad_scale(x, torch.tensor(0.5)), X, 0.5 * G),
    "reverse": (lambda x: ops.grad_reverse(x, 2.0), X, -2 * G),
    "clip value": (lambda x: ops.grad_clip(x, value=1.0), X, G.clamp(-1, 1)),
    "clip norm": (lambda x: ops.grad_clip(x, norm=1.0), X, G / G.norm()),
    "clip rows": (lambda x: ops.grad_clip(x, norm=1.0, dim=1), X, G / G.norm(dim=1, keepdim=True)),
    "no clip": (lambda x: ops.grad_clip(x, norm=100.0), X, G),
    "noise": (lambda x: ops.grad_noise(x, 0.0), X, G),
    "round": (ops.round_through, X.round(), G),
    "sign": (ops.sign_through, X.sign(), G * (X.abs() < 1)),
    "sign like tanh": (lambda x: ops.sign_through(x, like=torch.tanh), X.sign(), G * (1 - X.tanh() ** 2)),
    "threshold": (lambda x: ops.threshold_through(x, 0.5), (X > 0.5).double(),
                  G * torch.sigmoid(X - 0.5) * (1 - torch.sigmoid(X - 0.5))),
    "clamp": (lambda x: ops.clamp_through(x, 0.0, 1.0), X.clamp(0, 1), G),
    "straight through": (ops.straight_through(torch.floor), X.floor(), G),
    "tap": (ops.GradTap(), X, G),
}  # fmt: skip
MODULES = [
    ops.StopGradient(), ops.GradScale(0.5), ops.GradReverse(0.5), ops.GradClip(norm=1.0), ops.GradNoise(0.1),
    ops.straight_through(torch.round), ops.straight_through(torch.sign, like=torch.tanh), ops.GradTap(),
]  # fmt: skip
FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (ops.stop_gradient, ()), (ops.grad_scale, (0.5,)), (ops.grad_reverse, (0.5,)), (ops.grad_noise, (0.1,)),
    (ops.round_through, ()), (ops.sign_through, ()), (ops.threshold_through, (0.1,)), (ops.clamp_through, (-0.5, 0.5)),
]  # fmt: skip


def outcome(op: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor | None]:
    x = X.to(dtype).requires_grad_()
    y = op(x)
    (grad,) = torch.autograd.grad(y, x, G.to(dtype), allow_unused=True)
    return y.detach(), grad


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_value_and_gradient(name: str, dtype: torch.dtype) -> None:
    op, value, gradient = CONTROLS[name]
    y, grad = outcome(op, dtype)
    close = {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.bfloat16, torch.float16) else {"rtol": 1e-5, "atol": 1e-6}
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), value, **close)
    if gradient is None:
        assert grad is None
    else:
        assert grad is not None and grad.dtype == dtype
        torch.testing.assert_close(grad.double(), gradient, **close)


@pytest.mark.parametrize("name", CONTROLS)
def test_compiles_as_one_graph(name: str) -> None:
    op, value, gradient = CONTROLS[name]
    torch._dynamo.reset()
    y, grad = outcome(torch.compile(lambda x: op(x), fullgraph=True, backend="aot_eager"))
    torch.testing.assert_close(y, value)
    if gradient is not None:  # a compiled graph gives zeros where eager gives None
        torch.testing.assert_close(grad, gradient)


@pytest.mark.parametrize("name", [name for name in CONTROLS if name not in ("noise", "clip rows")])
def test_vmap_gives_what_a_loop_gives(name: str) -> None:
    op = CONTROLS[name][0]

    def slope(x: Tensor, g: Tensor) -> Tensor:
        return torch.func.grad(lambda t: (op(t) * g).sum())(x)

    batched = torch.func.vmap(slope)(X, G)
    torch.testing.assert_close(batched, torch.stack([slope(x, g) for x, g in zip(X, G)]))


@pytest.mark.parametrize("name", ["scale", "reverse", "clip norm", "no clip", "sign like tanh", "tap"])
def test_second_derivatives_are_finite_and_flow(name: str) -> None:
    x = X.clone().requires_grad_()
    (first,) = torch.autograd.grad((CONTROLS[name][0](x) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.isfinite().all() and second.any()


def test_clip_by_norm_of_a_gradient_of_zeros() -> None:
    x, g = X.clone().requires_grad_(), torch.zeros_like(X, requires_grad=True)
    (first,) = torch.autograd.grad(ops.grad_clip(x, norm=1.0), x, g, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), g)
    assert not first.any() and torch.equal(second, torch.ones_like(X))


@pytest.mark.parametrize(("function", "rest"), FUNCTIONS, ids=[f.__name__ for f, _ in FUNCTIONS])
def test_check_knows_the_functions(function: Callable[..., Any], rest: tuple[Any, ...]) -> None:
    report = gs.check(function, X.clone().requires_grad_(), *rest, level="quick")
    assert report.ok, str(report)


def test_check_knows_clip_at_the_standard_level() -> None:
    assert gs.check(ops.GradClip(norm=0.5), X.clone().requires_grad_()).ok
    assert gs.check(ops.grad_clip, X.clone().requires_grad_(), kwargs={"value": 0.5}).ok


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_check_knows_the_modules(module: torch.nn.Module) -> None:
    report = gs.check(module, X.clone().requires_grad_(), level="quick")
    assert report.ok, str(report)


class TestReverse:
    def test_a_schedule_does_not_compile_again_and_is_saved(self) -> None:
        torch._dynamo.reset()
        layer = ops.GradReverse(lambda step: step / 4)
        compiled = torch.compile(lambda x: layer(x), fullgraph=True, backend="aot_eager")
        outcome(compiled)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for step in (1, 2):
                layer.step()
                torch.testing.assert_close(outcome(compiled)[1], -step / 4 * G)
        other = ops.GradReverse(lambda step: step / 4)
        other.load_state_dict(layer.state_dict())
        assert other.strength == 0.5 and other.steps == 2

    def test_the_strength_of_forward_counts(self) -> None:
        layer, x = ops.GradReverse(1.0), X.clone().requires_grad_()
        y = layer(x)
        layer.set_strength(9.0)
        torch.testing.assert_close(torch.autograd.grad(y, x, G)[0], -G)


class TestTap:
    def test_statistics_of_every_step(self) -> None:
        tap = ops.GradTap("here", keep=2)
        assert tap.latest is None
        for factor in (1, 2, 3):
            x = torch.zeros(4, requires_grad=True)
            torch.autograd.grad(ops.grad_tap(x, tap), x, factor * torch.tensor([0.0, 3.0, -4.0, 0.0]))
        assert [one.step for one in tap.statistics] == [1, 2]
        assert tap.latest is not None
        assert (tap.latest.largest, tap.latest.rms, tap.latest.zeros) == (12.0, 7.5, 0.5)
        assert tap.latest.mean == pytest.approx(-0.75) and tap.latest.not_finite == 0
        assert not tap.state_dict()

    def test_what_is_not_finite_is_counted(self) -> None:
        tap, x = ops.GradTap(), torch.zeros(4, requires_grad=True)
        torch.autograd.grad(tap(x), x, torch.tensor([float("nan"), float("inf"), 1.0, 2.0]))
        assert tap.latest is not None and tap.latest.not_finite == 0.5

    def test_a_model_in_another_dtype_keeps_its_statistics(self) -> None:
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), ops.GradTap()).bfloat16()
        net(torch.ones(2, 3, dtype=torch.bfloat16)).sum().backward()
        tap = net[1]
        assert isinstance(tap, ops.GradTap) and tap.history.dtype == torch.float32
        assert tap.latest is not None and tap.latest.mean == 1.0

    def test_removed_it_is_the_identity(self) -> None:
        tap, x = ops.GradTap(), X.clone().requires_grad_()
        tap.remove()
        assert tap(x) is x
        tap.restore()
        assert tap(x) is not x


def test_a_length_beyond_float16_is_clipped_too() -> None:
    x = torch.zeros(400, dtype=torch.float16, requires_grad=True)
    (grad,) = torch.autograd.grad(ops.grad_clip(x, norm=10.0), x, torch.full((400,), 6e4, dtype=torch.float16))
    torch.testing.assert_close(grad, torch.full((400,), 0.5, dtype=torch.float16))


def test_a_generator_cannot_be_part_of_a_graph_and_says_so() -> None:
    torch._dynamo.reset()
    drawn = torch.compile(ops.GradNoise(0.1, torch.Generator()), fullgraph=True, backend="eager")
    with pytest.raises(
        torch._dynamo.exc.Unsupported, match=r"ops\.Noise cannot be part of this graph, because a torch\.Generator"
    ):
        drawn(X.clone().requires_grad_())


def test_noise_is_what_was_asked_for() -> None:
    x = torch.zeros(20_000, requires_grad=True)
    found = [
        torch.autograd.grad(ops.grad_noise(x, 0.5, torch.Generator().manual_seed(s)).sum(), x)[0] for s in (0, 0, 1)
    ]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    assert abs(found[0].std().item() - 0.5) < 0.02 and abs(found[0].mean().item() - 1) < 0.02
    assert ops.GradNoise(1.0).eval()(x) is x


WHOLE = torch.tensor([1, 2])
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.grad_scale(WHOLE, 1.0), TypeError, "grad_scale: x has dtype torch.int64"),
    (lambda: ops.grad_scale(3.0, 1.0), TypeError, "x must be a tensor, not float"),
    (lambda: ops.grad_scale(X, "1"), TypeError, "scale must be a number, not str"),
    (lambda: ops.grad_scale(X, torch.ones(2)), ValueError, r"scale must be one number; it is a tensor of shape \(2,\)"),
    (lambda: ops.grad_reverse(X, float("nan")), ValueError, "strength must be finite"),
    (lambda: ops.grad_clip(X), ValueError, "give either value= or norm=, not neither"),
    (lambda: ops.grad_clip(X, value=1.0, norm=1.0), ValueError, "not both"),
    (lambda: ops.grad_clip(X, value=0.0), ValueError, "use stop_gradient"),
    (lambda: ops.grad_clip(X, value=1.0, dim=1), ValueError, "dim= goes with norm="),
    (lambda: ops.GradClip(norm=-1.0), ValueError, "norm must be finite and at least 0"),
    (lambda: ops.grad_noise(X, -1.0), ValueError, "std must be finite and at least 0"),
    (lambda: ops.grad_noise(X, 1.0, 3), TypeError, "generator must be a torch.Generator, not int"),
    (lambda: ops.straight_through(3), TypeError, "fn must be a function of x, not int"),
    (lambda: ops.straight_through(torch.sum)(X), ValueError, "must give the same shape"),
    (lambda: ops.straight_through(lambda x: 3)(X), TypeError, "must return one tensor"),
    (lambda: ops.clamp_through(X, 1.0, 0.0), ValueError, "min .1.0. is above max"),
    (lambda: ops.GradTap(keep=0), ValueError, "keep must be at least 1"),
    (lambda: ops.grad_tap(X, "here"), TypeError, "tap must be a GradTap, not str"),
    (lambda: ops.GradReverse(1.0).step(), RuntimeError, "there is no schedule"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "sentence"), BAD, ids=[sentence[:40] for _, _, sentence in BAD])
def test_bad_input_gets_a_sentence(call: Callable[[], Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()
