"""Linear and ReLU in one Function: the value before the ReLU is never kept.

    y  = max(x W^T + b, 0)
    h  = g where y > 0, else 0
    dx = h W            dW = h^T x            db = sum of h over all but the last dimension

Teaches: y is positive exactly where the hidden value was, so the output is all the mask there is; the ReLU may
    overwrite the product, which is nobody's input. One tensor of the output's size less than two separate Functions.
When not to use it: torch.relu(F.linear(...)) keeps the same tensors alive (relu saves its output); fuse for a kernel.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TEACHES = "the output is its own mask; a fresh intermediate may be overwritten, because nobody else sees it"
SECOND_ORDER = True
COMPILES = True


class LinearReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        y = F.linear(x, weight, bias).relu_()
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight, y = ctx.saved_tensors
        h = torch.where(y > 0, grad_output, 0)
        rows = h.reshape(-1, weight.shape[0])
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = h @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = rows.t() @ x.reshape(-1, weight.shape[1])
        if ctx.needs_input_grad[2]:
            grad_bias = rows.sum(0)
        return grad_x, grad_weight, grad_bias


class LinearReLULayer(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return LinearReLU.apply(x, self.weight, self.bias)


gradsmith_inputs = {
    "LinearReLU": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}
