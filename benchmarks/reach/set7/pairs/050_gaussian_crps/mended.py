import math

import torch
from torch.autograd import Function


class GaussianCRPS(Function):
    """Continuous ranked probability score of N(mu, sigma^2) at y."""

    @staticmethod
    def forward(ctx, mu, sigma, y):
        if mu.shape != sigma.shape or mu.shape != y.shape or mu.is_complex() or sigma.is_complex() or y.is_complex():
            raise ValueError("mu, sigma and y must be real and of the same shape")
        if bool((sigma <= 0).any()):
            raise ValueError("sigma must be positive")
        ctx.save_for_backward(mu, sigma, y)
        z = (y - mu) / sigma
        pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return sigma * (z * torch.erf(z / math.sqrt(2)) + 2 * pdf - 1 / math.sqrt(math.pi))

    @staticmethod
    def backward(ctx, grad):
        mu, sigma, y = ctx.saved_tensors
        z = (y - mu) / sigma
        side = torch.erf(z / math.sqrt(2))
        pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return -grad * side, grad * (2 * pdf - 1 / math.sqrt(math.pi)), grad * side


gradsmith_inputs = {
    "GaussianCRPS": lambda: (
        torch.randn(5, requires_grad=True),
        torch.rand(5).add(0.3).requires_grad_(),
        torch.randn(5, requires_grad=True),
    )
}
