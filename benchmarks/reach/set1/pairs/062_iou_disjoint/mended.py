import torch


class IoULoss(torch.autograd.Function):
    """1 - IoU of boxes (N, 4) as x1, y1, x2, y2; disjoint boxes have IoU 0."""

    @staticmethod
    def forward(ctx, pred, target):
        lt = torch.maximum(pred[:, :2], target[:, :2])
        rb = torch.minimum(pred[:, 2:], target[:, 2:])
        wh = (rb - lt).clamp_min(0)
        inter = wh.prod(1)
        size = pred[:, 2:] - pred[:, :2]
        tsize = target[:, 2:] - target[:, :2]
        union = size.prod(1) + tsize.prod(1) - inter
        ctx.save_for_backward(pred, target, rb - lt, wh, inter, union, size)
        return 1 - inter / union

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        pred, target, raw, wh, inter, union, size = ctx.saved_tensors
        di = -g * (union + inter) / union**2
        da = g * inter / union**2
        edge = wh.flip(1) * di[:, None]  # through the width: times the height
        edge = edge * (raw > 0)
        garea = size.flip(1) * da[:, None]
        lo = -edge * (pred[:, :2] > target[:, :2]) - garea
        hi = edge * (pred[:, 2:] < target[:, 2:]) + garea
        return torch.cat([lo, hi], 1), None


def _boxes():
    t = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 4.0, 3.0]], dtype=torch.float64)
    jitter = 0.4 * torch.rand(2, 4, dtype=torch.float64) - 0.2
    return (t + jitter).requires_grad_(), t


gradsmith_inputs = {"IoULoss": _boxes}
