"""Built-in: torch.sum. The sum over any dimensions.

    y  = sum of x over dims
    dx = g, copied along dims

Teaches: the gradient of a sum is a copy, and expand copies without memory. The shape with the summed dimensions kept
    at size 1 is all that backward needs, whatever dims and keepdim were: save a shape, not the tensor.
When not to use it: torch.sum does exactly this.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "save a shape, not a tensor; expand copies without memory; negative and several dims come for free"
BUILTIN = "torch.sum"
SECOND_ORDER = True
COMPILES = True


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
        kept = torch.sum(x, dim, keepdim=True)
        ctx.shape, ctx.kept_shape = x.shape, kept.shape
        if keepdim:
            return kept
        return kept.squeeze() if dim is None else kept.squeeze(dim)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return grad_output.reshape(ctx.kept_shape).expand(ctx.shape), None, None


def configured(dim: int | tuple[int, ...] | None, keepdim: bool) -> tuple[Tensor, int | tuple[int, ...] | None, bool]:
    return torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), dim, keepdim


gradsmith_inputs = {
    "Sum": [
        lambda: configured(-1, False),
        lambda: configured((0, -1), True),
        lambda: configured((-3, 1), False),
        lambda: configured(None, False),
    ]
}
