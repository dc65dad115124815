"""Another memory layout adds in another order: where numbers cancel, that shows, and is no defect."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gradsmith as gs


class Cancelling(torch.autograd.Function):
    """backward computes in float32, and adds a sum that cancels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, w = ctx.saved_tensors
        grad = grad_output.float()
        # What cancels leaves the rounding of one order of adding, and is then blown up.
        bent = ((grad + 1e4).sum(0) - grad.sum(0) - 1e4 * grad.shape[0]) * 10
        grad = grad + bent
        return (grad @ w.float().t()).to(x.dtype), (x.float().t() @ grad).to(w.dtype)


class Strides(torch.autograd.Function):
    """Reads grad_output as if it lay in one row after the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return (x.float() * 3).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        rows = torch.as_strided(grad_output, (grad_output.numel(),), (1,))
        return 3 * rows.float().view(grad_output.shape).to(grad_output.dtype)


def matrices() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    drawn = [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((6, 5), (5, 7))]
    return drawn[0].requires_grad_(), drawn[1].requires_grad_()


def test_rounding_that_is_blown_up_is_not_the_layouts_fault() -> None:
    report = gs.check(Cancelling, *matrices(), select=("layout-dependent",))
    assert "layout-dependent" not in [f.rule for f in report.findings]


def test_a_layout_that_is_not_read_is_an_error_in_float32_too() -> None:
    report = gs.check(Strides, matrices()[0], select=("layout-dependent",))
    assert [f.rule for f in report.errors] == ["layout-dependent"]
