"""Soft dynamic time warping of two series, cell by cell (Cuturi and Blondel, 2017)."""

import torch


class SoftDTW(torch.autograd.Function):
    """The soft minimum over all alignments of the summed distances."""

    @staticmethod
    def forward(ctx, distances, gamma):
        n, m = distances.shape
        infinite = distances.new_full((), float("inf"))
        total = [[infinite] * (m + 1) for _ in range(n + 1)]
        total[0][0] = distances.new_zeros(())
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                before = torch.stack((total[i - 1][j - 1], total[i - 1][j], total[i][j - 1]))
                total[i][j] = distances[i - 1, j - 1] - gamma * torch.logsumexp(-before / gamma, dim=0)
        ctx.save_for_backward(distances, torch.stack([torch.stack(row) for row in total]))
        ctx.gamma = gamma
        return total[n][m]

    @staticmethod
    def backward(ctx, grad_output):
        distances, total = ctx.saved_tensors
        n, m = distances.shape
        # What reached a cell from the one before it: exp((r_next - d_next - r) / gamma).
        weight = distances.new_zeros(n + 1, m + 1)
        weight[n - 1, m - 1] = 1
        for i in range(n - 1, -1, -1):
            for j in range(m - 1, -1, -1):
                for row, column in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                    if row < n and column < m:
                        share = (total[row + 1, column + 1] - distances[row, column] - total[i + 1, j + 1]) / ctx.gamma
                        weight[i, j] += weight[row, column] * share.exp()
        return grad_output * weight[:n, :m], None


def two_series():
    x, y = torch.randn(76, 1, dtype=torch.float64), torch.randn(72, 1, dtype=torch.float64)
    return (x - y.T).square().requires_grad_(), 0.5


gradsmith_inputs = {"SoftDTW": two_series}
