import torch
from torch.autograd.function import once_differentiable


def _split_min(a, b):
    """The share of a in the slope of min(a, b), a half each at a tie."""
    return (a < b).to(a.dtype) + 0.5 * (a == b).to(a.dtype)


class BoxIoU(torch.autograd.Function):
    """Intersection over union of the real boxes a and b (N, 4), each x1, y1, x2, y2 with x1 < x2 and y1 < y2."""

    @staticmethod
    def forward(ctx, a, b):
        if a.dim() != 2 or a.shape[1] != 4 or a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError("two (N, 4) tensors of one dtype")
        if not bool((a[:, :2] < a[:, 2:]).all() and (b[:, :2] < b[:, 2:]).all()):
            raise ValueError("a box without area")
        ctx.save_for_backward(a, b)
        side = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0)
        inter = side.prod(1)
        area = (a[:, 2:] - a[:, :2]).prod(1) + (b[:, 2:] - b[:, :2]).prod(1)
        return inter / (area - inter)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        gap = torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])
        side = gap.clamp(min=0)
        inter = side.prod(1)
        size_a, size_b = a[:, 2:] - a[:, :2], b[:, 2:] - b[:, :2]
        union = size_a.prod(1) + size_b.prod(1) - inter
        g_inter = (grad * (union + inter) / union**2)[:, None]
        g_area = (-grad * inter / union**2)[:, None]
        g_side = g_inter * side.flip(1) * (gap > 0)
        high, low = _split_min(a[:, 2:], b[:, 2:]), _split_min(-a[:, :2], -b[:, :2])
        side_a, side_b = g_area * size_a.flip(1), g_area * size_b.flip(1)
        ga = torch.cat((-g_side * low - side_a, g_side * high + side_a), 1)
        gb = torch.cat((-g_side * (1 - low) - side_b, g_side * (1 - high) + side_b), 1)
        return ga, gb


gradsmith_inputs = {
    "BoxIoU": lambda: (
        torch.cat((torch.rand(4, 2) * 0.4, torch.rand(4, 2) + 1), 1).requires_grad_(),
        torch.cat((torch.rand(4, 2) * 0.4, torch.rand(4, 2) + 1), 1).requires_grad_(),
    )
}
