import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class FocalLoss(torch.autograd.Function):
    """Sum of the binary focal loss of `logits`; `labels` are 0 or 1."""

    @staticmethod
    def forward(ctx, logits, labels, alpha=0.5, gamma=2.0):
        if gamma < 1:
            raise ValueError("gamma must be at least 1")
        if labels.shape != logits.shape or not bool(((labels == 0) | (labels == 1)).all()):
            raise ValueError("labels must be 0 or 1, one for each logit")
        z = torch.where(labels == 1, logits, -logits)
        pt = torch.sigmoid(z)
        weight = torch.where(labels == 1, alpha, 1 - alpha).to(logits.dtype)
        ctx.save_for_backward(logits, labels)
        ctx.alpha, ctx.gamma = alpha, gamma
        return -(weight * (1 - pt) ** gamma * F.logsigmoid(z)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        logits, labels = ctx.saved_tensors
        sign = torch.where(labels == 1, 1.0, -1.0).to(logits.dtype)
        z = sign * logits
        pt = torch.sigmoid(z)
        g = (1 - pt) ** ctx.gamma * (ctx.gamma * pt * F.logsigmoid(z) - (1 - pt))
        weight = torch.where(labels == 1, ctx.alpha, 1 - ctx.alpha).to(logits.dtype)
        return grad * weight * sign * g, None, None, None


gradsmith_inputs = {
    "FocalLoss": lambda: (torch.randn(8, requires_grad=True), torch.tensor([0., 1., 1., 0., 0., 1., 0., 1.]), 0.5, 2.0)
}
