import math

import torch
from torch.autograd.function import once_differentiable


class VonMisesLogProb(torch.autograd.Function):
    """Log density of the angle x with concentration kappa > 0 (mean 0), both of one shape."""

    @staticmethod
    def forward(ctx, x, kappa):
        if x.is_complex() or x.shape != kappa.shape or not bool((kappa > 0).all()):
            raise ValueError("kappa must be positive, of the shape of x")
        ctx.save_for_backward(x, kappa)
        return kappa * (torch.cos(x) - 1) - math.log(2 * math.pi) - torch.log(torch.special.i0e(kappa))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, kappa = ctx.saved_tensors
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        return -grad * kappa * torch.sin(x), grad * (torch.cos(x) - ratio)


gradsmith_inputs = {
    "VonMisesLogProb": lambda: (torch.randn(5, requires_grad=True), (torch.rand(5) * 4 + 0.1).requires_grad_())
}
