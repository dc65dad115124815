"""Quantisation to integer levels with a learned step size.

    q     = clamp(round(x / s), low, high)                  y = q * s
    dx    = g where low <= x / s <= high, else 0            (straight through the rounding, stopped by the clamp)
    ds    = r * sum of g * (q - x / s inside, q outside)    (r = 1 / sqrt(n * high) balances it against the weights)

Teaches: rounding passes straight through, clamping does not, and the step size learns from both the rounding error
    inside the range and the level it is stuck at outside (Esser et al., Learned Step Size Quantization, 2020).
When not to use it: for a fixed step torch.fake_quantize_per_tensor_affine has the same dx.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "straight through the rounding, stopped by the clamp, and a gradient for the step size itself"
SECOND_ORDER = False
COMPILES = True


class Quantise(torch.autograd.Function):  # gradsmith: surrogate[quantise]
    @staticmethod
    def forward(ctx: Any, x: Tensor, step: Tensor, low: int, high: int) -> Tensor:
        ctx.save_for_backward(x, step)
        ctx.low, ctx.high = low, high
        return (x / step).round().clamp(low, high) * step

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, step = ctx.saved_tensors
        ratio = x / step
        inside = (ratio >= ctx.low) & (ratio <= ctx.high)
        grad_x = grad_step = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.where(inside, grad_output, 0)
        if ctx.needs_input_grad[1]:
            level = ratio.round().clamp(ctx.low, ctx.high)
            each = grad_output * torch.where(inside, level - ratio, level)
            grad_step = each.sum_to_size(step.shape) / max(x.numel() * ctx.high, 1) ** 0.5
        return grad_x, grad_step, None, None


class LearnedQuantiser(nn.Module):
    def __init__(self, bits: int = 4, step: float = 0.1) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.tensor(step))
        self.low, self.high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def forward(self, x: Tensor) -> Tensor:
        return Quantise.apply(x, self.step, self.low, self.high)


gradsmith_inputs = {
    "Quantise": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor(0.4, dtype=torch.float64, requires_grad=True),
        -4,
        3,
    )
}
