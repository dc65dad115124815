"""A bias per channel, added to a batch of images, signals or vectors.

    y[n, c, ...] = x[n, c, ...] + b[c]
    dx = g              db[c] = sum of g over every dimension except 1

Teaches: b was copied to every sample and position, so it gets the sum over all of them. Returning g unsummed is not
    always an error: where the sizes happen to fit, PyTorch sums over the wrong dimension and says nothing.
When not to use it: `x + b[:, None, None]` under autograd, or the bias of the layer before.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "a broadcast argument gets the sum over the dimensions it was copied along"
SECOND_ORDER = True
COMPILES = True


class ChannelBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        return x + bias.reshape(-1, *[1] * (x.dim() - 2))

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor | None]:
        grad_bias = None
        if ctx.needs_input_grad[1]:
            grad_bias = grad_output.sum([d for d in range(grad_output.dim()) if d != 1])
        return grad_output, grad_bias


gradsmith_inputs = {
    "ChannelBias": [
        lambda: (
            torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True),
            torch.randn(3, dtype=torch.float64, requires_grad=True),
        ),
        lambda: (
            torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(3, dtype=torch.float64, requires_grad=True),
        ),
    ]
}
