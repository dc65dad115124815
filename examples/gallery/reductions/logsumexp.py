"""Built-in: torch.logsumexp. The logarithm of a sum of exponentials, stable at both ends.

    m  = max of x over dims  (0 where that is infinite)
    y  = m + log(sum of exp(x - m))
    dx = g * exp(x - y)             (the softmax; 0 where every x is -inf)

Teaches: subtracting the maximum prevents overflow, and -inf minus -inf is nan, so infinite maxima are replaced first.
    Saving the input and the output, not the softmax, keeps the second derivative right and stores nothing extra.
When not to use it: torch.logsumexp does exactly this.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "stable at both ends: subtract the maximum, and guard -inf minus -inf in forward and in backward"
BUILTIN = "torch.logsumexp"
SECOND_ORDER = True
COMPILES = True


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int | tuple[int, ...], keepdim: bool) -> Tensor:
        highest = torch.amax(x, dim, keepdim=True)
        shift = torch.where(highest.isfinite(), highest, 0)
        kept = torch.exp(x - shift).sum(dim, keepdim=True).log() + shift
        y = kept if keepdim else kept.squeeze(dim)
        ctx.save_for_backward(x, y)
        ctx.kept_shape = kept.shape
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        x, y = ctx.saved_tensors
        kept = torch.where(y.isfinite(), y, 0).reshape(ctx.kept_shape)
        return grad_output.reshape(ctx.kept_shape) * torch.exp(x - kept), None, None


def configured(dim: int | tuple[int, ...], keepdim: bool) -> tuple[Tensor, int | tuple[int, ...], bool]:
    return torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), dim, keepdim


gradsmith_inputs = {
    "LogSumExp": [
        lambda: configured(-1, False),
        lambda: configured((0, -1), True),
        lambda: configured((-3, 1), False),
    ]
}
