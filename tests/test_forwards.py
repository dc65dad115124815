"""How often a check runs the subject, and that the short look at a gradient calls nothing right that is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import gradsmith as gs
from gradsmith.lab import Arguments, Settings, resolve
from gradsmith.lab.measure.gradient import judge
from gradsmith.lab.measure.screening import is_plainly_right
from gradsmith.lab.run import forward

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmarks() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def test_a_standard_check_of_a_right_gradient_needs_at_most_250_forwards(benchmarks: None) -> None:
    from forwards import LIMIT, count

    counted, report = count()
    assert report.ok
    assert counted.total <= LIMIT == 250, counted.probes.most_common(5)


def product(*, x: float = 1.0, w: float = 1.0, opaque: bool = False) -> type[torch.autograd.Function]:
    """x * w summed over rows, with a gradient that is off by these factors."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            product = torch.from_numpy(a.detach().numpy() * b.detach().numpy()) if opaque else a * b
            return product.sum(-1), product.exp()

        @staticmethod
        def backward(ctx, first, second):
            a, b = ctx.saved_tensors
            inner = first.unsqueeze(-1) + second * (a * b).exp()
            return x * inner * b, w * inner * a

    return Product


def plainly_right(function: type[torch.autograd.Function], *inputs: torch.Tensor) -> bool:
    target = resolve(function)
    run = forward(target, Arguments.of(inputs, names=target.names))
    v = run.normal(torch.Generator().manual_seed(7))
    return is_plainly_right(run, v, Settings(), run.gradients(v))


def inputs(scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(4, 3, dtype=torch.float64, generator=generator) for _ in range(2))
    return (a * scale).requires_grad_(), (b / scale).requires_grad_()


@pytest.mark.parametrize("opaque", [False, True])
def test_a_right_gradient_is_seen_with_a_short_look(opaque: bool) -> None:
    assert plainly_right(product(opaque=opaque), *inputs())


@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e6])  # of two inputs, one gradient is then 1e12 times the other
@pytest.mark.parametrize("off", [-1.0, 2.0, 1 + 1e-4])
@pytest.mark.parametrize("which", ["x", "w"])
def test_a_wrong_gradient_of_one_input_is_not_hidden_by_the_other(
    which: str, off: float, scale: float, opaque: bool
) -> None:
    wrong = product(**{which: off}, opaque=opaque)
    assert not plainly_right(wrong, *inputs(scale))
    target = resolve(wrong)
    assert judge(target, Arguments.of(inputs(scale), names=target.names), Settings()).wrong


def test_forward_and_backward_that_leave_out_the_same_part_are_seen_by_the_difference() -> None:
    class Detached(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x.detach()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.saved_tensors[0]  # autograd through forward says the same

    assert not plainly_right(Detached, inputs()[0])


def test_what_the_short_look_cannot_settle_is_judged_in_full() -> None:
    """A size that only one of two wrong inputs shows: the message names it as before."""

    class Mean(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return (x * w).mean(0)

        @staticmethod
        def backward(ctx, grad_output):
            x, w = ctx.saved_tensors
            return grad_output * w / 4, (grad_output * x / x.shape[0])

    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(4, 3, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2))
    report = gs.check(Mean, x, w)
    found = [f for f in report.findings if f.rule == "shape-dependent"]
    assert found and found[0].argument == "x"
