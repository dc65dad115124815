"""A gradient of the limit is judged only where the iterations of forward have reached it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.lab import Arguments, Lab, Settings, resolve
from gradsmith.lab.explore.trial import judged_at
from gradsmith.lab.measure.loops import converged, endings


class FixedPoint(torch.autograd.Function):
    """z with z = tanh(rate * z + x), after 200 passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(200):
            z = torch.tanh(rate * z + x)
        ctx.save_for_backward(z, rate)
        return z

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        z, rate = ctx.saved_tensors
        through = grad_output * (1 - z * z) / (1 - rate * (1 - z * z))
        return through, through * z


class WrongFixedPoint(FixedPoint):
    """Forgets the factor z in the gradient of rate."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        through, _ = FixedPoint.backward(ctx, grad_output)
        return through, through


class Root(torch.autograd.Function):
    """The square root by Newton's method, until it moves no more, written in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.ones_like(x)
        for _ in range(12):
            step = (y - x / y) / 2
            y -= step
            if step.abs().max() < 1e-12:
                break
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output / (2 * y)


class TopValue(torch.autograd.Function):
    """The largest eigenvalue of a symmetric matrix, by power iteration with `while`."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        symmetric = (matrix + matrix.mT) / 2
        vector = torch.ones(matrix.shape[0], dtype=matrix.dtype)
        passes = 0
        while passes < 300:
            vector = symmetric @ vector
            vector = vector / vector.norm()
            passes += 1
        ctx.save_for_backward(vector)
        return vector @ symmetric @ vector

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (vector,) = ctx.saved_tensors
        return grad_output * torch.outer(vector, vector)


def scale(cost: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    f, g = torch.zeros(cost.shape[0], dtype=cost.dtype), torch.zeros(cost.shape[1], dtype=cost.dtype)
    for _ in range(30):
        f = -epsilon * torch.logsumexp((g - cost) / epsilon, 1)
        g = -epsilon * torch.logsumexp((f[:, None] - cost) / epsilon, 0)
    return f, g


class Sinkhorn(torch.autograd.Function):
    """The regularised cost of transport between uniform distributions; the loop stands in a helper."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, epsilon: float) -> Tensor:
        f, g = scale(cost, epsilon)
        ctx.save_for_backward(((f[:, None] + g - cost) / epsilon).exp())
        return f.sum() + g.sum()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (plan,) = ctx.saved_tensors
        return grad_output * plan, None


class Recurrent(torch.autograd.Function):
    """h = tanh(h + x) over time; the gradient is wrong for inputs below zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        h = torch.zeros_like(x[0])
        states = [h]
        for now in x.unbind():
            h = torch.tanh(h + now)
            states.append(h)
        ctx.save_for_backward(torch.stack(states[1:]), x)
        return h

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        states, x = ctx.saved_tensors
        grads, grad = [], grad_output
        for h in states.flip(0).unbind():
            grad = grad * (1 - h * h)
            grads.append(grad)
        return torch.stack(grads[::-1]) * (x > 0)


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def matrix(*values: float) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(len(values), len(values), dtype=torch.float64, generator=generator))[0]
    return ((basis * torch.tensor(values, dtype=torch.float64)) @ basis.T).requires_grad_()


def cost(size: float) -> Tensor:
    drawn = torch.rand(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return (size * drawn).requires_grad_()


AT_REST: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [
    (FixedPoint, (double(0.3, -0.2), double(0.5, 0.4)), (double(1e-3, -1e-3), double(0.99, 0.995))),
    (Root, (double(2.0, 3.0),), (double(2.0, 1e9),)),
    (TopValue, (matrix(2.0, 1.0, 0.5),), (matrix(2.0, 1.97, 0.5),)),
    (Sinkhorn, (cost(1.0), 0.5), (cost(10.0), 0.5)),
]


def lab_of(function: Any, args: tuple[Any, ...]) -> Lab:
    target = resolve(function)
    return Lab(target, Arguments.of(args, {}, target.names), Settings())


@pytest.mark.parametrize(("function", "near", "far"), AT_REST, ids=lambda x: getattr(x, "__name__", ""))
def test_a_right_gradient_is_not_called_wrong_where_the_loop_stops_too_early(
    function: Any, near: tuple[Any, ...], far: tuple[Any, ...]
) -> None:
    lab = lab_of(function, near)
    assert converged(*lab.precise, 0) is True
    there = Arguments.of(far, {}, lab.target.names)
    assert converged(lab.target, there, 0) is False
    assert not lab.gradient.wrong
    found = judged_at(lab, lab.target, there)
    # Off by less than the loop left undone, it is right; else nothing is said of it.
    assert found.status == "right" or (found.status, found.detail) == (
        "unjudged",
        "its iterations have not converged there",
    )


def test_a_wrong_gradient_stays_wrong_where_the_loop_converges() -> None:
    lab = lab_of(WrongFixedPoint, (double(0.3, -0.2), double(0.5, 0.4)))
    there = Arguments.of((double(0.1, 0.4), double(0.2, 0.3)), {}, lab.target.names)
    assert judged_at(lab, lab.target, there).status == "wrong"


def test_a_loop_over_time_is_judged() -> None:
    lab = lab_of(Recurrent, (double(0.5, 0.2, 0.9, 0.1).detach()[:, None].requires_grad_(),))
    there = Arguments.of((double(0.5, -0.7, -0.9, 0.1).detach()[:, None].requires_grad_(),), {}, lab.target.names)
    assert converged(*lab.precise, 0) is False
    assert judged_at(lab, lab.target, there).status == "wrong"


def test_without_a_loop_there_is_nothing_to_converge() -> None:
    lab = lab_of(lambda x: x.exp(), (double(1.0, 2.0),))
    assert converged(*lab.precise, 0) is None


def test_a_tracer_that_was_there_before_hears_the_run_and_is_put_back() -> None:
    heard: set[str] = set()

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        heard.add(f"{frame.f_code.co_name} {event}")
        return tracer

    lab, before = lab_of(Root, (double(2.0, 3.0),)), sys.gettrace()
    sys.settrace(tracer)
    try:
        found = endings(*lab.precise, 0)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert {"forward call", "forward line", "forward return"} <= heard
    (ending,) = found.values()
    assert not ending.exhausted


def test_a_fixed_point_is_verified_whatever_rates_are_tried() -> None:
    report = gs.check(FixedPoint, double(0.3, -0.2), double(0.5, 0.4))
    assert report.subjects[0].verdict == "verified", str(report)
