"""float16: what overflows or cancels in backward, although forward is kept in float32 for just that reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.findings import Finding

Backward = Callable[[Tensor, Tensor], Tensor]


def wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def function(
    value: Callable[[Tensor], Tensor], backward: Backward, *, widen: bool = True
) -> type[torch.autograd.Function]:
    """forward computes `value` in float32 where it is given float16."""

    class Sub(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return value(wide(x) if widen else x).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return backward(x, g).to(x.dtype)

    return Sub


def normalise(x: Tensor, g: Tensor) -> Tensor:
    norm = x.norm(dim=-1, keepdim=True)
    return g / norm - x * (g * x).sum(-1, keepdim=True) / norm**3


def normalise_with_a_narrow_product(x: Tensor, g: Tensor) -> Tensor:
    norm = wide(x).norm(dim=-1, keepdim=True)
    inner = (g * x).sum(-1, keepdim=True)
    return wide(g) / norm - wide(x) * wide(inner) / norm**3


def softmax(x: Tensor, g: Tensor) -> Tensor:
    y = x.softmax(-1)
    return y * (g - (g * y).sum(-1, keepdim=True))


def softmax_with_narrow_exponentials(x: Tensor, g: Tensor) -> Tensor:
    e = x.exp()
    y = wide(e) / wide(e).sum(-1, keepdim=True)
    return y * (wide(g) - (wide(g) * y).sum(-1, keepdim=True))


def by_rms(x: Tensor, g: Tensor) -> Tensor:
    square = x.square().mean(-1, keepdim=True)
    return g / square.sqrt() - x * (g * x).mean(-1, keepdim=True) / square**1.5


def by_rms_with_narrow_squares(x: Tensor, g: Tensor) -> Tensor:
    square = wide((x * x).mean(-1, keepdim=True))
    return wide(g) / square.sqrt() - wide(x) * (wide(g) * wide(x)).mean(-1, keepdim=True) / square**1.5


CASES: dict[str, tuple[Callable[[Tensor], Tensor], Backward, Backward]] = {
    "an inner product": (lambda x: x / x.norm(dim=-1, keepdim=True), normalise, normalise_with_a_narrow_product),
    "exponentials": (lambda x: x.softmax(-1), softmax, softmax_with_narrow_exponentials),
    "squares": (lambda x: x / x.square().mean(-1, keepdim=True).sqrt(), by_rms, by_rms_with_narrow_squares),
}


def half(subject: Any, *inputs: Tensor, level: str = "standard") -> list[Finding]:
    report = gs.check(subject, *inputs, select=["low-precision"], level=level)
    return [f for f in report.findings if f.rule == "low-precision"]


def leaf() -> Tensor:
    return torch.randn(4, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.parametrize("name", CASES)
def test_what_float16_spoils_in_backward_alone_is_a_warning(name: str) -> None:
    value, _, broken = CASES[name]
    (found,) = half(function(value, broken), leaf())
    assert found.severity == "warning" and "float16" in found.message and "'x'" in found.message, found.message


def test_the_gentlest_scale_that_shows_it_is_named() -> None:
    """exp(x) leaves float16 at 11.1: inputs up to 3 have to be 8 times as large."""
    value, _, broken = CASES["exponentials"]
    (found,) = half(function(value, broken), leaf())
    assert "inputs 8 times as large" in found.message


@pytest.mark.parametrize("name", CASES)
def test_a_backward_that_widens_as_forward_does_is_not_named(name: str) -> None:
    value, right, _ = CASES[name]
    assert not half(function(value, lambda x, g: right(wide(x), wide(g))), leaf())


def test_a_forward_that_was_not_written_for_float16_is_judged_at_its_own_inputs_only() -> None:
    broken = CASES["an inner product"][2]
    subject = function(lambda x: wide(x) / wide(x).norm(dim=-1, keepdim=True), broken, widen=False)
    assert half(subject, leaf())  # it is what it does that counts, not how it is spelled
    cube = function(lambda x: x**3, lambda x, g: g * x * x * 3, widen=False)
    assert not half(cube, leaf())


def test_where_autograd_overflows_too_nothing_is_said() -> None:
    """The square of the sum leaves the range of float16 on the way back, whoever computes it."""
    subject = function(
        lambda x: x.sum().square().sqrt(),
        lambda x, g: g * (x.sum() * x.sum() / x.sum().square()).sqrt() * x.sum().sign() * torch.ones_like(x),
        widen=False,
    )
    assert not half(subject, leaf())
