import math

import torch
from torch.autograd.function import once_differentiable


class BiasGelu(torch.autograd.Function):
    """gelu(x + bias) + residual; residual may be None."""

    @staticmethod
    def forward(ctx, x, bias, residual):
        z = x + bias
        ctx.save_for_backward(z)
        out = z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))
        return out if residual is None else out + residual

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        dx = db = dr = None
        cdf = 0.5 * (1 + torch.erf(z / math.sqrt(2)))
        dz = grad_output * (cdf + z * torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))
        if ctx.needs_input_grad[0]:
            dx = dz
        if ctx.needs_input_grad[1]:
            db = dz.reshape(-1, dz.size(-1)).sum(0)
        if ctx.needs_input_grad[2]:
            dr = grad_output
        return dx, db, dr


gradsmith_inputs = {
    "BiasGelu": lambda: (
        torch.randn(3, 5, requires_grad=True),
        torch.randn(5, requires_grad=True),
        torch.randn(3, 5, requires_grad=True),
    )
}
