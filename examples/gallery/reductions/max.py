"""Built-in: torch.amax. The maximum over any dimensions, ties sharing the gradient equally.

    y  = max of x over dims
    dx = g / k at the k elements equal to the maximum, 0 elsewhere

Teaches: with ties, g at each of them would count it k times over; dividing by k keeps the total (and is what amax
    does; torch.max(dim=...) gives all of it to one index instead). The mask takes grad_output's dtype and device by
    itself.
When not to use it: torch.amax does exactly this.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "ties share the gradient, so that its total is kept; zeros inherit dtype and device from grad_output"
BUILTIN = "torch.amax"
SECOND_ORDER = True
COMPILES = True


class Max(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int | tuple[int, ...], keepdim: bool) -> Tensor:
        ctx.save_for_backward(x)
        ctx.dim = dim
        return torch.amax(x, dim, keepdim)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        highest = torch.amax(x, ctx.dim, keepdim=True)
        is_max = x == highest
        share = grad_output.reshape(highest.shape) / is_max.sum(ctx.dim, keepdim=True)
        return torch.where(is_max, share, 0), None, None


def configured(dim: int | tuple[int, ...], keepdim: bool) -> tuple[Tensor, int | tuple[int, ...], bool]:
    """Distinct values, a tenth apart: at a tie there is no derivative to compare with."""
    x = torch.randperm(24).to(torch.float64).div(10).reshape(2, 4, 3)
    return x.requires_grad_(), dim, keepdim


gradsmith_inputs = {
    "Max": [
        lambda: configured(-1, False),
        lambda: configured((0, -1), True),
        lambda: configured((-3, 1), False),
    ]
}
