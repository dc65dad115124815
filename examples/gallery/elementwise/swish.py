"""Built-in for beta = 1: torch.nn.functional.silu. Swish with a learnable beta.

    s     = sigmoid(beta * x)
    y     = x * s
    dx    = g * (s + beta * x * s * (1 - s))
    dbeta = sum of g * x^2 * s * (1 - s)        (summed to the shape of beta)

Teaches: a parameter that was broadcast gets the sum of what reached its copies; s is recomputed from the inputs,
    which is what keeps the second derivative right; a frozen beta costs nothing.
When not to use it: with a fixed beta of 1 use silu; without a memory limit plain `x * torch.sigmoid(beta * x)` will
    do.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "a learnable scalar: recompute from the inputs, sum to the parameter's shape, skip it when frozen"
BUILTIN = "torch.nn.functional.silu"
SECOND_ORDER = True
COMPILES = True


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        slope = x * s * (1 - s)
        grad_x = grad_beta = None
        if ctx.needs_input_grad[0]:
            grad_x = (grad_output * (s + beta * slope)).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            grad_beta = (grad_output * x * slope).sum_to_size(beta.shape)
        return grad_x, grad_beta


class LearnableSwish(nn.Module):
    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(beta))

    def forward(self, x: Tensor) -> Tensor:
        return Swish.apply(x, self.beta)


gradsmith_inputs = {
    "Swish": [
        lambda: (
            torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
            torch.tensor(1.5, dtype=torch.float64, requires_grad=True),
        ),
        lambda: (
            torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
            torch.rand(3, dtype=torch.float64).add(0.5).requires_grad_(),
        ),
    ]
}
