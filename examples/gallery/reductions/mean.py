"""Built-in: torch.mean. The mean over any dimensions.

    y  = (1 / n) * sum of x over dims              (n elements go into each output)
    dx = g / n, copied along dims

Teaches: n is the number of elements per output, x.numel() / y.numel(), not x.numel(): the factor everybody forgets
    first, and the reason a loss learns at another rate after a change of batch size.
When not to use it: torch.mean does exactly this.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "divide by the elements per output, x.numel() / y.numel(), once"
BUILTIN = "torch.mean"
SECOND_ORDER = True
COMPILES = True


class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
        kept = torch.mean(x, dim, keepdim=True)
        ctx.shape, ctx.kept_shape = x.shape, kept.shape
        ctx.count = x.numel() // max(kept.numel(), 1)
        if keepdim:
            return kept
        return kept.squeeze() if dim is None else kept.squeeze(dim)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return (grad_output / ctx.count).reshape(ctx.kept_shape).expand(ctx.shape), None, None


def configured(dim: int | tuple[int, ...] | None, keepdim: bool) -> tuple[Tensor, int | tuple[int, ...] | None, bool]:
    return torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), dim, keepdim


gradsmith_inputs = {
    "Mean": [
        lambda: configured(-2, False),
        lambda: configured((0, -1), True),
        lambda: configured((-3, 1), False),
        lambda: configured(None, True),
    ]
}
