"""Learnable band-pass filters (SincNet)."""
import math

import torch


class SincFilter(torch.autograd.Function):
    """2 f sinc(2 f t) for cutoff f (C, 1) and taps t (K,)."""

    @staticmethod
    def forward(ctx, f, t):
        ctx.save_for_backward(f, t)
        return 2 * f * torch.sinc(2 * f * t)

    @staticmethod
    def backward(ctx, g):
        f, t = ctx.saved_tensors
        u = 2 * f * t
        # d/du sinc(u) = (cos(pi u) - sinc(u)) / u
        dsinc = (torch.cos(math.pi * u) - torch.sinc(u)) / u
        gf = g * (2 * torch.sinc(u) + 2 * f * dsinc * 2 * t)
        return gf.sum(1, keepdim=True), None


# even number of taps, no centre
gradsmith_inputs = {
    "SincFilter": lambda: ((0.05 + 0.3 * torch.rand(3, 1)).requires_grad_(), torch.arange(8) - 3.5)
}
