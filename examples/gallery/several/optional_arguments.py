"""An optional tensor, an integer and a flag among the arguments: a weighted power, summed or averaged.

    y  = r * sum of w * x^k               (r is 1, or 1 / n for the mean; w is all ones when absent)
    dx = g * r * w * k * x^(k - 1)        dw = g * r * x^k, summed to the shape of w

Teaches: one gradient per argument of forward, in order: a tensor or None. An absent tensor is saved as None and gets
    None; numbers live on ctx as attributes and get None. needs_input_grad is False for all of them.
When not to use it: ordinary tensor code does this; the pattern is for kernels that take options.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "one return value per argument: None for numbers, flags and absent tensors, whose values live on ctx"
SECOND_ORDER = True
COMPILES = True


class WeightedPower(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, power: int, mean: bool) -> Tensor:
        if power < 1:
            raise ValueError(f"power must be at least 1, not {power}")
        ctx.save_for_backward(x, weight)
        ctx.power = power
        ctx.scale = 1 / max(x.numel(), 1) if mean else 1.0
        terms = x**power
        return (terms if weight is None else weight * terms).sum() * ctx.scale

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        each = grad_output * ctx.scale
        if ctx.needs_input_grad[0]:
            grad_x = each * ctx.power * x ** (ctx.power - 1)
            if weight is not None:
                grad_x = grad_x * weight
        if ctx.needs_input_grad[1]:
            grad_weight = (each * x**ctx.power).sum_to_size(weight.shape)
        return grad_x, grad_weight, None, None


gradsmith_inputs = {
    "WeightedPower": [
        lambda: (
            torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(3, dtype=torch.float64, requires_grad=True),
            3,
            True,
        ),
        lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), None, 2, False),
    ]
}
