import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SoftDTW(Function):
    """Soft dynamic time warping of a cost matrix (N, M), by Cuturi and Blondel."""

    @staticmethod
    def forward(ctx, cost, gamma):
        if cost.dim() != 2 or not cost.is_floating_point():
            raise TypeError("cost must be a real matrix")
        if gamma <= 0:
            raise ValueError("gamma must be positive")
        n, m = cost.shape
        r = cost.new_full((n + 2, m + 2), float("inf"))
        r[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                prev = torch.stack([r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]])
                r[i, j] = cost[i - 1, j - 1] - gamma * torch.logsumexp(-prev / gamma, 0)
        ctx.save_for_backward(cost, r)
        ctx.gamma = gamma
        return r[n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        cost, r = ctx.saved_tensors
        n, m = cost.shape
        gamma = ctx.gamma
        r = r.clone()
        d = cost.new_zeros(n + 2, m + 2)
        d[1 : n + 1, 1 : m + 1] = cost
        e = cost.new_zeros(n + 2, m + 2)
        r[:, m + 1] = float("-inf")
        r[n + 1, :] = float("-inf")
        r[n + 1, m + 1] = r[n, m]
        e[n + 1, m + 1] = 1.0
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                a = torch.exp((r[i + 1, j] - r[i, j] - d[i + 1, j]) / gamma)
                b = torch.exp((r[i, j + 1] - r[i, j] - d[i, j + 1]) / gamma)
                c = torch.exp((r[i + 1, j + 1] - r[i, j] - d[i + 1, j + 1]) / gamma)
                e[i, j] = e[i + 1, j] * a + e[i, j + 1] * b + e[i + 1, j + 1] * c
        return grad_output * e[1 : n + 1, 1 : m + 1], None


gradsmith_inputs = {"SoftDTW": lambda: (torch.rand(4, 5, requires_grad=True), 1.0)}
