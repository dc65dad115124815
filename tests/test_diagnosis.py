"""Every cause names its own BAD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
