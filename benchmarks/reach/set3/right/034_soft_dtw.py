import torch
from torch.autograd.function import once_differentiable


class SoftDTW(torch.autograd.Function):
    """Soft dynamic time warping of two real series (N,) and (M,) with squared costs; gamma positive."""

    @staticmethod
    def _softmin(a, b, c, gamma):
        return -gamma * torch.logsumexp(torch.stack((a, b, c)) / -gamma, 0)

    @staticmethod
    def forward(ctx, x, y, gamma=1.0):
        if x.dim() != 1 or y.dim() != 1 or not len(x) or not len(y) or gamma <= 0 or x.is_complex() or x.dtype != y.dtype:
            raise ValueError("two series of one dtype, gamma positive")
        n, m = len(x), len(y)
        cost = (x[:, None] - y) ** 2
        r = x.new_full((n + 1, m + 1), float("inf"))
        r[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                r[i, j] = cost[i - 1, j - 1] + SoftDTW._softmin(r[i - 1, j], r[i, j - 1], r[i - 1, j - 1], gamma)
        ctx.save_for_backward(x, y, r)
        ctx.gamma = gamma
        return r[n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, y, r = ctx.saved_tensors
        n, m = len(x), len(y)
        cost = (x[:, None] - y) ** 2
        e = torch.zeros_like(r)
        e[n, m] = 1
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                best = r[i, j] - cost[i - 1, j - 1]
                for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)):
                    e[p] += e[i, j] * torch.exp((best - r[p]) / ctx.gamma)
        d = 2 * grad * e[1:, 1:] * (x[:, None] - y)
        return d.sum(1), -d.sum(0), None


gradsmith_inputs = {"SoftDTW": lambda: (torch.randn(3, requires_grad=True), torch.randn(4, requires_grad=True), 0.5)}
