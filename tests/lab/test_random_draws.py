"""A forward that draws random numbers: another layout is another draw, whatever the seed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import gradsmith as gs
from gradsmith.lab import Arguments, Lab, Settings, resolve


class SeededDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, seed: int) -> Tensor:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            mask = torch.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0], None


class OwnGenerator(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        generator = torch.Generator(x.device).manual_seed(3)
        mask = torch.empty_like(x).bernoulli_(0.5, generator=generator)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0]


class SeldomDrops(torch.autograd.Function):
    """On twelve elements, two seeds usually give the same result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        mask = torch.rand_like(x) > 1e-4
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0]


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def stochastic(subject: Any, *inputs: Any) -> bool:
    target = resolve(subject)
    return Lab(target, Arguments.of(inputs, names=target.names), Settings()).stochastic


def test_a_mask_with_a_seed_of_its_own_is_not_compared_across_layouts() -> None:
    for report in (gs.check(SeededDropout, leaf(4, 3), 7), gs.check(OwnGenerator, leaf(4, 3))):
        assert "layout-dependent" not in {f.rule for f in report.findings}
        assert report.ok, report


def test_drawing_is_seen_even_where_the_result_does_not_change() -> None:
    report = gs.check(SeldomDrops, leaf(4, 3))
    assert report.ok
    assert report.subjects[0].conditions["vmap"] == "not tried: forward draws random numbers"


def test_what_may_draw_and_does_not_is_compared_as_ever() -> None:
    queries = leaf(2, 1, 4, 3)
    assert not stochastic(lambda q: functional.scaled_dot_product_attention(q, q, q), queries)
    assert not stochastic(lambda x: functional.dropout(x, 0.5, training=False), leaf(4, 3))
    assert stochastic(lambda x: functional.dropout(x, 0.5), leaf(4, 3))
