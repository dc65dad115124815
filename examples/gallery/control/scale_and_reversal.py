"""The identity with a scaled gradient, and the reversal used for adversarial training.

    y = x        dx = factor * g                    y = x        dx = -strength * g

Teaches: scaling a gradient changes a branch's learning rate without touching its values; reversal makes the layers
    below maximise what the layers above minimise. grad_output is never changed in place: other branches still hold
    it.
When not to use it: optimiser parameter groups set learning rates per parameter more plainly.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "identity forward, scaled or negated gradient backward, grad_output itself untouched"
SECOND_ORDER = False
COMPILES = True


class ScaleGradient(torch.autograd.Function):  # gradsmith: surrogate[scale]
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor, None


class ReverseGradient(torch.autograd.Function):  # gradsmith: surrogate[reversal]
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * -ctx.strength, None


gradsmith_inputs = {
    "ScaleGradient": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.1),
    "ReverseGradient": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 2.0),
}
