"""float8 and its like are kept, not computed in: that costs what depends on it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.lab.measure.values import computable, unchanged

FLOAT8 = torch.float8_e4m3fn


class TimesFloat8(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return x * weight.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output * ctx.saved_tensors[0].to(grad_output.dtype), None


class WithFloat8Beside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        return 2 * x, x.to(FLOAT8)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor, _: Tensor) -> Any:
        return 2 * grad_output


class OnlyFloat8(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.to(FLOAT8)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output.to(torch.float64)


def leaf() -> Tensor:
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


def test_a_saved_float8_tensor_stops_no_probe() -> None:
    report = gs.check(TimesFloat8, leaf(), torch.randn(4, 3).to(FLOAT8))
    assert report.ok, report


def test_a_float8_output_is_not_judged_and_that_is_said() -> None:
    report = gs.check(WithFloat8Beside, leaf())
    assert report.ok, report
    assert any("output[1] was not judged" in note and "float8_e4m3fn" in note for note in report.notes)


def test_nothing_but_float8_is_unverified_with_the_reason() -> None:
    (subject,) = gs.check(OnlyFloat8, leaf()).subjects
    assert subject.verdict == "unverified"
    assert "float8_e4m3fn" in subject.reason


@pytest.mark.parametrize(
    "dtype", [FLOAT8, torch.float8_e5m2, torch.bool, torch.int64, torch.complex128, torch.bfloat16]
)
def test_a_write_is_seen_in_every_type(dtype: torch.dtype) -> None:
    before = torch.tensor([0.0, 1.0, 3.0]).to(dtype)
    after = before.clone()
    assert unchanged(before, after)
    after[0] = 1
    assert not unchanged(before, after)


def test_types_are_asked_not_listed() -> None:
    assert computable(torch.float64)
    assert computable(torch.complex64)
    assert not computable(FLOAT8)
