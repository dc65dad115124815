import torch


class DiceLoss(torch.autograd.Function):
    """Mean over the batch of 1 - (2 * sum(p * t) + s) / (sum(p) + sum(t) + s); p and t are (N, pixels)."""

    smooth = 1.0

    @staticmethod
    def forward(ctx, p, t):
        if p.is_complex() or t.is_complex():
            raise ValueError("real input only")
        if p.dim() != 2 or p.shape != t.shape:
            raise ValueError("p and t must both be (N, pixels)")
        s = DiceLoss.smooth
        inter, total = (p * t).sum(1), p.sum(1) + t.sum(1)
        ctx.save_for_backward(p, t)
        return (1 - (2 * inter + s) / (total + s)).mean()

    @staticmethod
    def backward(ctx, grad):
        p, t = ctx.saved_tensors
        s = DiceLoss.smooth
        inter = (p * t).sum()
        total = p.sum() + t.sum() + s
        common = (2 * inter + s) / total**2
        scale = grad / p.shape[0]
        return scale * (common - 2 * t / total), scale * (common - 2 * p / total)


def example():
    torch.manual_seed(0)
    return (torch.rand(1, 12, dtype=torch.float64, requires_grad=True),
            torch.rand(1, 12, dtype=torch.float64, requires_grad=True))


gradsmith_inputs = {"DiceLoss": example}
