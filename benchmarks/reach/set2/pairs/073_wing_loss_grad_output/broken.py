import math

import torch
from torch.autograd.function import once_differentiable


class WingLoss(torch.autograd.Function):
    """Wing loss of landmark errors: w log(1 + |d|/eps) below w, |d| - C above; mean."""

    @staticmethod
    def forward(ctx, pred, target, w, eps):
        d = pred - target
        c = w - w * math.log1p(w / eps)
        ctx.save_for_backward(d)
        ctx.w, ctx.eps = w, eps
        return torch.where(d.abs() < w, w * torch.log1p(d.abs() / eps), d.abs() - c).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (d,) = ctx.saved_tensors
        slope = torch.where(d.abs() < ctx.w, ctx.w / (ctx.eps + d.abs()), torch.ones_like(d)) * d.sign()
        grad = slope / d.numel()
        return grad, -grad, None, None


gradsmith_inputs = {
    "WingLoss": lambda: (
        torch.tensor([0.5, -1.0, 3.0], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True),
        1.5,
        0.5,
    )
}
