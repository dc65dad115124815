import torch
from torch.autograd.function import once_differentiable


class SmoothL1(torch.autograd.Function):
    """Smooth L1 (sum); beta >= 0, and beta = 0 is the plain L1 loss."""

    @staticmethod
    def forward(ctx, pred, target, beta):
        diff = pred - target
        ctx.save_for_backward(diff)
        ctx.beta = beta
        mag = diff.abs()
        if beta == 0:
            return mag.sum()
        return torch.where(mag < beta, 0.5 * mag * mag / beta, mag - 0.5 * beta).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        slope = (diff / ctx.beta).clamp(-1, 1)
        return grad_output * slope, -grad_output * slope, None


gradsmith_inputs = {
    "SmoothL1": lambda: (
        torch.tensor([0.1, -0.4, 2.0], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.0, 0.3, 0.7], dtype=torch.float64, requires_grad=True),
        0.5,
    )
}
