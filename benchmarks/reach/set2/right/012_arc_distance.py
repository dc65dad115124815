import torch


class ArcDistance(torch.autograd.Function):
    """Angle between vectors (N, 3); they may have any length but must not be (anti)parallel."""

    @staticmethod
    def forward(ctx, a, b):
        cross = torch.linalg.cross(a, b).norm(dim=-1)
        if (cross <= 1e-12 * a.norm(dim=-1) * b.norm(dim=-1)).any():
            raise ValueError("parallel vectors have no differentiable angle")
        ctx.save_for_backward(a, b)
        return torch.atan2(cross, (a * b).sum(-1))

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        c = torch.linalg.cross(a, b)
        n = c / c.norm(dim=-1, keepdim=True)
        g = grad_output[:, None]
        ga = g * torch.linalg.cross(a, n) / a.square().sum(-1, keepdim=True)
        gb = g * torch.linalg.cross(n, b) / b.square().sum(-1, keepdim=True)
        return ga, gb


gradsmith_inputs = {
    "ArcDistance": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
}
