"""The identity with a clipped gradient, by value and by norm.

    y = x        dx = clamp(g, -limit, limit)           y = x        dx = g * min(1, limit / |g|)

Teaches: by value changes the direction of the gradient, by norm only its length. Neither is linear in g, so two
    backward passes added up are not the backward of the sum. At g = 0 the norm's quotient is inf, and min makes it 1.
When not to use it: torch.nn.utils.clip_grad_norm_ clips all parameters together after backward; this clips one place.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "by value bends the direction, by norm keeps it; neither is linear in grad_output"
SECOND_ORDER = False
COMPILES = True


class ClipByValue(torch.autograd.Function):  # gradsmith: surrogate[clip]
    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: float) -> Tensor:
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output.clamp(-ctx.limit, ctx.limit), None


class ClipByNorm(torch.autograd.Function):  # gradsmith: surrogate[clip]
    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: float) -> Tensor:
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * (ctx.limit / grad_output.norm()).clamp(max=1), None


gradsmith_inputs = {
    "ClipByValue": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.5),
    "ClipByNorm": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 1.0),
}
