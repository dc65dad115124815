"""Built-in: torch.nn.functional.layer_norm. Normalisation that keeps its output instead of its input.

    h  = (x - mean) * s,  s = 1 / sqrt(var + eps)            y = w * h + b
    dx = s * (w g - mean of w g - h * mean of (w g h))       h = (y - b) / w
    dw = sum over rows of g * h                              db = sum over rows of g

Teaches: the next Linear keeps y anyway, so a backward written in y costs no memory of its own; the input need not be kept
    as well. An inverse in backward needs an invertible forward: w must not be 0 (gs.ops.layer_norm looks, and keeps x then).
When not to use it: with weights near 0, in half precision (h would be had from three digits), or for second order: s is an
    intermediate, a constant to autograd, and once_differentiable says so.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TEACHES = "a backward written in the output costs no memory where the next layer keeps that output anyway"
BUILTIN = "torch.nn.functional.layer_norm"
SECOND_ORDER = False
COMPILES = True


class NormFromOutput(torch.autograd.Function):  # gradsmith: ignore[nonfinite-gradient]
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
        s = torch.rsqrt(variance + eps)
        y = ((wide - mean) * s * weight + bias).to(x.dtype)
        ctx.save_for_backward(y, s, weight, bias)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        y, s, weight, bias = ctx.saved_tensors
        h, g = (y - bias).to(s.dtype) / weight, grad_output.to(s.dtype)
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            wg = g * weight
            dx = (s * (wg - wg.mean(-1, keepdim=True) - h * (wg * h).mean(-1, keepdim=True))).to(y.dtype)
        if ctx.needs_input_grad[1]:
            dw = (g * h).sum_to_size(weight.shape).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            db = g.sum_to_size(bias.shape).to(bias.dtype)
        return dx, dw, db, None


gradsmith_inputs = {
    "NormFromOutput": lambda: (
        torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([0.7, -1.2, 1.5], dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
        1e-5,
    )
}
