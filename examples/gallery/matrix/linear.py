"""Built-in: torch.nn.functional.linear. An affine map with optional bias, for any number of leading dimensions.

    y  = x W^T + b
    dx = g W            dW = g^T x            db = sum of g over all but the last dimension

Teaches: the shapes derive the formula (dW must be out x in, so it is g^T x); three gradients, each computed only when
    needed, because frozen weights are common and two of the three are matrix products; None where there is no bias.
When not to use it: as it stands, never; it is where fused, quantised or low-rank layers start from.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "shapes derive the formula; each matrix product only when needs_input_grad asks for it; optional bias"
BUILTIN = "torch.nn.functional.linear"
SECOND_ORDER = True
COMPILES = True


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        rows = grad_output.reshape(-1, weight.shape[0])
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = rows.t() @ x.reshape(-1, weight.shape[1])
        if ctx.needs_input_grad[2]:
            grad_bias = rows.sum(0)
        return grad_x, grad_weight, grad_bias


class LinearLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return Linear.apply(x, self.weight, self.bias)


gradsmith_inputs = {
    "Linear": [
        lambda: (
            torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(5, dtype=torch.float64, requires_grad=True),
        ),
        lambda: (
            torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
            None,
        ),
    ]
}
