"""A size that another one is a multiple of can only change together with it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gradsmith as gs


class Weighed(torch.autograd.Function):
    """Every place of an image has a weight of its own, and the places are numbered through."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, weight: Tensor) -> Tensor:
        batch, channels, height, width = image.shape
        ctx.save_for_backward(image, weight)
        return (image.reshape(batch, channels, height * width) * weight.unsqueeze(1)).view_as(image)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        image, weight = ctx.saved_tensors
        batch, channels, height, width = image.shape
        flat = (batch, channels, height * width)
        grad = grad_output.reshape(flat)
        return (grad * weight.unsqueeze(1)).reshape(image.shape), (grad * image.reshape(flat)).sum(1)


class Mirrored(Weighed):
    """Height for width."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        image, _ = ctx.saved_tensors
        batch, channels, height, width = image.shape
        grad_image, grad_weight = Weighed.backward(ctx, grad_output)
        return grad_image.reshape(batch, channels, width, height), grad_weight


def example() -> tuple[Tensor, Tensor]:
    image = torch.randn(2, 3, 4, 4, dtype=torch.float64, requires_grad=True)
    return image, torch.randn(2, 16, dtype=torch.float64, requires_grad=True)


def test_a_square_image_is_tried_oblong_with_what_is_as_large_as_its_area() -> None:
    report = gs.check(Mirrored, *example())
    # What backward raises at another size is loud: a remark.
    assert [f.severity for f in report.findings if f.rule == "shape-dependent"] == ["info"]


def test_and_one_that_is_right_stays_so() -> None:
    report = gs.check(Weighed, *example())
    assert report.ok
    assert [f.rule for f in report.findings if f.severity != "info"] == []
