import math

import torch


class PowerDB(torch.autograd.Function):
    """10 log10(|z|^2 + floor) of a complex spectrum; floor > 0."""

    @staticmethod
    def forward(ctx, z, floor):
        p = z.real**2 + z.imag**2 + floor
        ctx.save_for_backward(z)
        ctx.floor = floor
        return 10 * torch.log10(p)

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        p = z.real**2 + z.imag**2 + ctx.floor
        return (20 / math.log(10) * g / p) * z, None


gradsmith_inputs = {"PowerDB": lambda: (torch.randn(3, 5, dtype=torch.complex128, requires_grad=True), 1e-3)}
