import torch


class BoxDistance(torch.autograd.Function):
    """Signed distance of points (N, 3) to an axis-aligned box with half sizes `half` around the origin."""

    @staticmethod
    def forward(ctx, points, half):
        if points.dim() != 2 or points.shape[1] != 3 or half.shape != (3,) or half.requires_grad:
            raise ValueError("points (N, 3), fixed half sizes (3,)")
        q = points.abs() - half
        outside = q.clamp(min=0).norm(dim=1)
        inside = q.amax(1).clamp(max=0)
        ctx.save_for_backward(points, half)
        return outside + inside

    @staticmethod
    def backward(ctx, grad_d):
        points, half = ctx.saved_tensors
        q = points.abs() - half
        out = q.clamp(min=0)
        length = out.norm(dim=1, keepdim=True)
        normal = torch.where(length > 0, out / torch.where(length > 0, length, 1.0), 0.0)
        return grad_d[:, None] * normal * points.sign(), None


def example():
    points = torch.tensor([[2.0, 0.3, -0.2], [-1.5, 2.0, 0.1], [3.0, -3.0, 2.5]], dtype=torch.float64)
    return points.requires_grad_(), torch.tensor([1.0, 0.5, 0.8], dtype=torch.float64)


gradsmith_inputs = {"BoxDistance": example}
