import torch


class DiceLoss(torch.autograd.Function):
    """1 - (2 sum(p t) + s) / (sum p + sum t + s) per sample, p and t (B, N)."""

    @staticmethod
    def forward(ctx, p, t, smooth):
        num = 2 * (p * t).sum(1) + smooth
        den = p.sum(1) + t.sum(1) + smooth
        ctx.save_for_backward(t, num, den)
        return 1 - num / den

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        t, num, den = ctx.saved_tensors
        num, den = num[:, None], den[:, None]
        dp = (2 * t * den - num) / den.square()
        return -g[:, None] * dp, None, None


gradsmith_inputs = {
    "DiceLoss": lambda: (torch.rand(3, 10).requires_grad_(), torch.randint(0, 2, (3, 10)).float(), 1.0)
}
