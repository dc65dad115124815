import torch
from torch.autograd.function import once_differentiable


class SoftDice(torch.autograd.Function):
    """Mean over rows of 1 - (2 p.t + 1) / (p.p + t.t + 1) for two real tensors of one shape (N, K)."""

    @staticmethod
    def forward(ctx, pred, target):
        if pred.shape != target.shape or pred.dim() != 2 or pred.is_complex() or target.is_complex():
            raise ValueError("two real (N, K) tensors")
        ctx.save_for_backward(pred, target)
        num = 2 * (pred * target).sum(1) + 1
        den = (pred * pred).sum(1) + (target * target).sum(1) + 1
        return (1 - num / den).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        num = 2 * (pred * target).sum(1, keepdim=True) + 1
        den = (pred * pred).sum(1, keepdim=True) + (target * target).sum(1, keepdim=True) + 1
        scale = grad / pred.shape[0]
        grad_pred = scale * 2 * (num * pred / den**2 - target / den)
        return grad_pred, None


gradsmith_inputs = {
    "SoftDice": lambda: (torch.rand(4, 9, requires_grad=True), (torch.rand(4, 9) > 0.5).float())
}
