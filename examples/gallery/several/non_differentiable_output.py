"""An output that has no derivative: the kept values, and a floating-point mask that says which were kept.

    y    = x where |x| > limit, else 0          (differentiable)
    kept = 1 where |x| > limit, else 0          (flat almost everywhere: no useful derivative)
    dx   = g * kept

Teaches: mark_non_differentiable keeps a floating-point output out of the graph, so nobody differentiates it by
    mistake (it has requires_grad False). Integer and bool outputs are left out by PyTorch itself. Backward still
    receives an argument for it, and ignores it.
When not to use it: when only y is wanted, use torch.nn.functional.hardshrink.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "mark_non_differentiable keeps a floating-point output out of the graph; backward still gets an argument"
SECOND_ORDER = True
COMPILES = True


class ShrinkWithMask(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: float) -> tuple[Tensor, Tensor]:
        kept = (x.abs() > limit).to(x.dtype)
        ctx.mark_non_differentiable(kept)
        ctx.save_for_backward(kept)
        return x * kept, kept

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor, _grad_kept: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return grad_y * kept, None


def away_from_limit() -> tuple[Tensor, float]:
    """Values at least 0.05 from the jump at 0.5."""
    x = torch.randn(4, 3, dtype=torch.float64)
    return (x + 0.05 * (x - 0.5).sign() * (x > 0) + 0.05 * (x + 0.5).sign() * (x < 0)).requires_grad_(), 0.5


gradsmith_inputs = {"ShrinkWithMask": away_from_limit}
