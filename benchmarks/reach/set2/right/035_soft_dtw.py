import numpy as np
import torch
from torch.autograd.function import once_differentiable


class SoftDTW(torch.autograd.Function):
    """Soft dynamic time warping of a cost matrix (n, m) with smoothing gamma > 0."""

    @staticmethod
    def forward(ctx, cost, gamma):
        D = cost.detach().double().numpy()
        n, m = D.shape
        R = np.full((n + 2, m + 2), np.inf)
        R[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                z = -np.array([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]]) / gamma
                top = z.max()
                R[i, j] = D[i - 1, j - 1] - gamma * (top + np.log(np.exp(z - top).sum()))
        ctx.table, ctx.gamma, ctx.cost = R, gamma, D
        return torch.tensor(R[n, m], dtype=cost.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        R, gamma, D = ctx.table.copy(), ctx.gamma, ctx.cost
        n, m = D.shape
        E = np.zeros((n + 2, m + 2))
        R[n + 1, :], R[:, m + 1] = -np.inf, -np.inf
        R[n + 1, m + 1] = R[n, m]
        E[n + 1, m + 1] = 1.0
        pad = np.zeros((n + 2, m + 2))
        pad[1 : n + 1, 1 : m + 1] = D
        for j in range(m, 0, -1):
            for i in range(n, 0, -1):
                total = 0.0
                for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                    if E[a, b]:
                        total += E[a, b] * np.exp((R[a, b] - R[i, j] - pad[a, b]) / gamma)
                E[i, j] = total
        return grad_output * torch.from_numpy(E[1 : n + 1, 1 : m + 1].copy()).to(grad_output.dtype), None


gradsmith_inputs = {"SoftDTW": lambda: (torch.rand(3, 4, dtype=torch.float64, requires_grad=True), 0.5)}
