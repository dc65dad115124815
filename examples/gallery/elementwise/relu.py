"""Built-in: torch.relu. The rectifier, from its input and from its output.

    y  = max(x, 0)
    dx = g where x > 0, else 0          (the same set as y > 0)

Teaches: whatever follows usually saves y anyway, so saving y costs nothing, and x may be overwritten or freed; saving
    x keeps a second tensor alive. torch.where, not multiplication by a mask: 0 * inf is nan.
When not to use it: torch.relu is faster and does this already.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "the output is saved by the next layer anyway: saving it too is free, saving the input is not"
BUILTIN = "torch.relu"
SECOND_ORDER = True
COMPILES = True


class ReLUFromOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, 0)


class ReLUFromInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, 0)


def away_from_zero() -> tuple[Tensor]:
    """Values at least 0.1 from the corner at 0, where no two-sided derivative exists."""
    x = torch.randn(4, 3, dtype=torch.float64)
    return ((x + 0.1 * x.sign()).requires_grad_(),)


gradsmith_inputs = {"ReLUFromOutput": away_from_zero, "ReLUFromInput": away_from_zero}
