import torch


class CatmullRom(torch.autograd.Function):
    """Catmull-Rom curve through p1, p2 at t in [0, 1]; control points (4, D), t (T,)."""

    @staticmethod
    def forward(ctx, pts, t):
        ctx.save_for_backward(pts, t)
        return basis(t) @ pts

    @staticmethod
    def backward(ctx, g):
        pts, t = ctx.saved_tensors
        o = torch.ones_like(t)
        z = torch.zeros_like(t)
        d = 0.5 * torch.stack([
            -o + 4 * t - 3 * t**2,
            z - 10 * t + 9 * t**2,
            o + 8 * t - 9 * t**2,
            z - 2 * t + 3 * t**2,
        ], 1)
        return basis(t).t() @ g, (g * (d @ pts)).sum(1)


def basis(t):
    return 0.5 * torch.stack([
        -t + 2 * t**2 - t**3,
        2 - 5 * t**2 + 3 * t**3,
        t + 4 * t**2 - 3 * t**3,
        -(t**2) + t**3,
    ], 1)


gradsmith_inputs = {
    "CatmullRom": lambda: (torch.randn(4, 2, requires_grad=True), torch.rand(5).requires_grad_())
}
