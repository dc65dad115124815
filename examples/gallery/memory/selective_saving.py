"""Built-in: torch.nn.functional.rms_norm. Normalisation that saves one number per row instead of a second full tensor.

    r  = 1 / sqrt(mean of x^2 over the last dimension + eps)
    y  = w * x * r
    dx = r * (g w - x r^2 * mean of (g w x))            dw = sum over rows of g * x * r

Teaches: keep what is dear to compute and small (r: one number per row), recompute what is cheap and large (x * r).
    Autograd on the plain formula saves three full tensors more. r is an intermediate: autograd takes it for a
    constant, so a second derivative would be wrong, and once_differentiable says so. Half precision is summed in
    float32.
When not to use it: the built-in is fused; without once_differentiable's limit, recompute r as well.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

TEACHES = "save what is small and dear, recompute what is large and cheap; accumulate half precision in float32"
BUILTIN = "torch.nn.functional.rms_norm"
SECOND_ORDER = False
COMPILES = True


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        r = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, r)
        return (wide * r * weight).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight, r = ctx.saved_tensors
        wide, g = x.to(r.dtype), grad_output.to(r.dtype)
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            gw = g * weight
            grad_x = (r * (gw - wide * r.square() * (gw * wide).mean(-1, keepdim=True))).to(x.dtype)
        if ctx.needs_input_grad[1]:
            grad_weight = (g * wide * r).sum_to_size(weight.shape).to(weight.dtype)
        return grad_x, grad_weight, None


class RMSNormLayer(nn.Module):
    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return RMSNorm.apply(x, self.weight, self.eps)


gradsmith_inputs = {
    "RMSNorm": lambda: (
        torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
        1e-6,
    )
}
