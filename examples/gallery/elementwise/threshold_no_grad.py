"""Built-in for a fixed threshold: torch.nn.functional.hardshrink. A threshold chosen under no_grad, and its mask.

    keep = |x| > quantile(|x|, q)         (decided under no_grad: a choice, not a formula)
    y    = x where keep, else 0
    dx   = g where keep, else 0

Teaches: what is computed under no_grad is a constant to the gradient, so backward must use the very mask that forward
    used; recomputing it, or letting g through everywhere, is the derivative of another function.
When not to use it: torch.where(keep, x, 0) under autograd gives this gradient without any Function.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "what no_grad decided is a constant: backward uses the very mask forward used"
BUILTIN = "torch.nn.functional.hardshrink"
SECOND_ORDER = True
COMPILES = True


class KeepWhere(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor) -> Tensor:
        ctx.save_for_backward(keep)
        return torch.where(keep, x, 0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return torch.where(keep, grad_output, 0), None


class QuantileThreshold(nn.Module):
    """Keeps the largest entries by magnitude: a share of 1 - q of them."""

    def __init__(self, q: float = 0.5) -> None:
        super().__init__()
        self.q = q

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            size = x.abs()
            keep = size > size.quantile(self.q)
        return KeepWhere.apply(x, keep)


def masked_inputs() -> tuple[Tensor, Tensor]:
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, x.detach().abs() > 0.5


gradsmith_inputs = {"KeepWhere": masked_inputs}
