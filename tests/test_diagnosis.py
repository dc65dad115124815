"""Every cause names its own BAD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch.autograd import Function

import gradsmith as gs
from gradsmith.diagnosis import Cause, causes
from gradsmith.findings import Finding, Report


def all_findings(report: Report) -> list[Finding]:
    return [g for f in report.findings for g in (f, *f.symptoms)]


@pytest.mark.parametrize("cause", list(causes().values()), ids=lambda cause: cause.name)
def test_each_cause_names_its_own_example(cause: Cause, check_source: Callable[..., Report]) -> None:
    report = check_source(cause.bad, level="quick")
    named = {f.cause for f in all_findings(report) if f.rule == "wrong-gradient"}
    assert cause.name in named, [(f.rule, f.cause, f.message) for f in all_findings(report)]


@pytest.mark.parametrize("cause", list(causes().values()), ids=lambda cause: cause.name)
def test_each_cause_has_a_page(cause: Cause) -> None:
    assert len(cause.title) > 10
    assert len(cause.page) > 30


def test_exchanged_gradients_are_not_called_a_factor() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            x, y = ctx.saved_tensors
            return grad * x, grad * y

    inputs = [torch.full((3, 4), v, dtype=torch.float64, requires_grad=True) for v in (1.7, 0.4)]
    causes = {f.cause for f in gs.check(Product, *inputs).findings if f.rule == "wrong-gradient"}
    assert causes == {"swapped"}


def test_what_only_says_where_names_no_mistake() -> None:
    from gradsmith.diagnosis import causes

    silent = {name for name, cause in causes().items() if not cause.names_a_mistake}
    assert silent == {"mask", "some-elements", "low-precision"}


class _NormalDensityBySeries(Function):
    """The error function by Abramowitz and Stegun's five terms in backward: off by 1e-7 to both sides, and float64 throughout."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * torch.erf(x) + torch.exp(-x * x) / torch.pi**0.5

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        t = 1 / (1 + 0.3275911 * x.abs())
        terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
        series = sum(a * t ** (i + 1) for i, a in enumerate(terms))
        return grad * x.sign() * (1 - series * torch.exp(-x * x))


class _SineInNumPy(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * torch.from_numpy(numpy.cos(x.numpy().astype("float32")).astype("float64"))


def test_a_type_is_named_for_lost_digits_only_where_it_was_seen() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    told = [f.message for f in gs.check(_NormalDensityBySeries, x, level="quick").findings]
    assert not any("float32" in message for message in told)
    (finding,) = [f for f in gs.check(_SineInNumPy, x, level="quick").findings if f.cause == "low-precision"]
    assert "computed outside torch" in finding.message
    assert "float32" not in finding.message
