"""relu(x W^T + b) that keeps one bit per output for backward.

For memory, where nobody else saves the output: before a Linear it gains nothing, because the Linear saves its input
anyway; before a pooling, an addition or a normalisation of one's own it keeps 1/32 of what torch.relu keeps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradsmith.ops.asked import linear
from gradsmith.ops.bits import pack, select
from gradsmith.ops.route import transformed, without_autocast, without_data


class _LinearReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        y = F.linear(x, weight, bias).relu_()
        ctx.save_for_backward(
            x, weight, pack((y <= 0).logical_not_())
        )  # as relu does, NaN lets its gradient through and is seen
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight, bits = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        g = select(grad, bits)
        count = x.shape[:-1].numel()  # said, because -1 is ambiguous where a size is 0
        rows = g.reshape(count, weight.shape[0])
        dx = g @ weight if wants_x else None
        dw = rows.t() @ x.reshape(count, weight.shape[1]) if wants_weight else None
        return dx, dw, rows.sum(0) if wants_bias else None


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """relu(linear(x, weight, bias)); one bit per output is kept for backward.

    >>> linear_relu(torch.ones(1, 2), torch.tensor([[1.0, 1.0], [-1.0, 0.0]]))
    tensor([[2., 0.]])
    """
    x, weight, bias = linear(x, weight, bias, "linear_relu")
    if transformed() or without_data(x):
        return F.linear(x, weight, bias).relu()
    with without_autocast(x):
        result: Tensor = _LinearReLU.apply(x, weight, bias)
    return result


class LinearReLU(nn.Linear):
    """`nn.Linear` and relu in one, with a mask of one bit per output.

    >>> LinearReLU(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def forward(self, x: Tensor) -> Tensor:
        return linear_relu(x, self.weight, self.bias)
