import torch
from torch.autograd.function import once_differentiable


class SegmentDistance(torch.autograd.Function):
    """Distance of real points p to the segments a-b, all (N, D), with a different from b; slope 0 on the segment."""

    @staticmethod
    def forward(ctx, p, a, b):
        if p.shape != a.shape or a.shape != b.shape or p.dim() != 2 or p.is_complex():
            raise ValueError("three real (N, D) tensors")
        d = b - a
        if not bool((d.norm(dim=1) > 0).all()):
            raise ValueError("a segment has no length")
        ctx.save_for_backward(p, a, b)
        s = ((p - a) * d).sum(1, keepdim=True) / (d * d).sum(1, keepdim=True)
        return (p - a - s.clamp(0, 1) * d).norm(dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p, a, b = ctx.saved_tensors
        d = b - a
        s = ((p - a) * d).sum(1, keepdim=True) / (d * d).sum(1, keepdim=True)
        r = p - a - s * d
        n = r.norm(dim=1, keepdim=True)
        n = torch.where(n > 0, r / n, torch.zeros_like(r)) * grad[:, None]
        return n, -(1 - s) * n, -s * n


gradsmith_inputs = {
    "SegmentDistance": lambda: (
        torch.tensor([[0.4, 1.0], [0.6, -0.5]], requires_grad=True),
        torch.tensor([[0.0, 0.0], [0.1, 0.2]], requires_grad=True),
        torch.tensor([[1.0, 0.1], [1.2, 0.3]], requires_grad=True),
    )
}
