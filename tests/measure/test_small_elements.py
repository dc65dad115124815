"""Elements that are small beside the others, in gradients of solvers: small is not nothing, and jumps are not slopes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs

_P = torch.tensor([1.0, -0.5, 0.3, -2.0, 0.8], dtype=torch.float64)


class Scales(torch.autograd.Function):
    """The fixed point of x = tanh(x + s p) / 2, which feels its first parameter a million times as much as its last."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        s = torch.logspace(0, -6, p.numel(), dtype=p.dtype, device=p.device)
        x = torch.zeros_like(p)
        for _ in range(500):
            new = 0.5 * torch.tanh(x + s * p)
            change, x = (new - x).abs().max(), new
            if change < 1e-8:
                break
        ctx.save_for_backward(p, x, s)
        return x

    @classmethod
    def backward(cls, ctx: Any, grad_output: Tensor) -> Tensor:  # type: ignore[override]
        p, x, s = ctx.saved_tensors
        t = 0.5 * (1 - torch.tanh(x + s * p) ** 2)
        small = torch.where(s < 1e-4, cls.factor, 1.0)
        return grad_output * t * s / (1 - t) * small


class Doubled(Scales):
    factor = 2.0


class Dropped(Scales):
    factor = 0.0


class Simplex(torch.autograd.Function):
    """The nearest point whose elements are not negative and sum to 1, by bisection: forward moves in jumps of 1e-9."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        low, high = p.min() - 1, p.max()
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if (p - middle).clamp(min=0).sum() > 1 else (low, middle)
        x = (p - (low + high) / 2).clamp(min=0)
        ctx.save_for_backward(x)
        return x

    @classmethod
    def backward(cls, ctx: Any, grad_output: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        on = (x > 0).to(grad_output.dtype)
        return on * (grad_output - (grad_output * on).sum() / on.sum()) * cls.factor


class SimplexOffByOnePercent(Simplex):
    factor = 1.01


class Guarded(torch.autograd.Function):
    """Two steps of a weighted least-squares with multipliers that fall to nothing; backward guards their quotient."""

    trace = 1e-9

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        x, multiplier = torch.zeros_like(p), torch.ones_like(p)
        for _ in range(60):
            x = x + 0.5 * ((p - x) * (p > 0))
            multiplier = multiplier * 0.5
        ctx.save_for_backward(p)
        return x

    @classmethod
    def backward(cls, ctx: Any, grad_output: Tensor) -> Tensor:  # type: ignore[override]
        (p,) = ctx.saved_tensors
        return grad_output * torch.where(p > 0, 1.0, cls.trace)


class NotATrace(Guarded):
    trace = 1e-3


def verdict(function: type[torch.autograd.Function], p: Tensor) -> str:
    return gs.check(function, p.clone().requires_grad_(), level="quick").subjects[0].verdict


@pytest.mark.parametrize("function", [Scales, Simplex, Guarded])
def test_a_right_gradient_is_right_at_small_elements(function: Any) -> None:
    assert verdict(function, torch.cat([_P, _P[:2].flip(0) / 2])) == "verified"


@pytest.mark.parametrize("function", [Doubled, Dropped, SimplexOffByOnePercent, NotATrace])
def test_a_small_element_that_is_not_nothing_is_judged_like_any_other(function: Any) -> None:
    assert verdict(function, torch.cat([_P, _P[:2].flip(0) / 2])) == "refuted"


def test_the_element_that_is_shown_is_one_that_is_wrong() -> None:
    report = gs.check(SimplexOffByOnePercent, _P.clone().requires_grad_(), level="quick")
    (error,) = report.errors
    assert abs(error.evidence["claimed"] / error.evidence["true"] - 1.01) < 1e-6
