import torch


class TableLookup(torch.autograd.Function):
    """Piecewise linear interpolation of (grid, values) at x; x must lie within the grid."""

    @staticmethod
    def forward(ctx, x, grid, values):
        if grid.dim() != 1 or grid.shape != values.shape or grid.numel() < 2 or grid.requires_grad:
            raise ValueError("grid and values must be vectors of one length; the grid is fixed")
        if (grid[1:] <= grid[:-1]).any():
            raise ValueError("the grid must increase")
        if (x < grid[0]).any() or (x > grid[-1]).any():
            raise ValueError("x outside of the grid")
        i = torch.searchsorted(grid, x.detach(), right=True).clamp(1, grid.numel() - 1) - 1
        t = (x - grid[i]) / (grid[i + 1] - grid[i])
        ctx.save_for_backward(x, grid, values, i)
        return values[i] * (1 - t) + values[i + 1] * t

    @staticmethod
    def backward(ctx, g):
        x, grid, values, i = ctx.saved_tensors
        h = grid[1] - grid[0]
        gx = g * (values[i + 1] - values[i]) / h
        t = ((x - grid[i]) / (grid[i + 1] - grid[i])).reshape(-1)
        flat, left = g.reshape(-1), i.reshape(-1)
        gv = torch.zeros_like(values).index_add(0, left, flat * (1 - t)).index_add(0, left + 1, flat * t)
        return gx, None, gv


def example():
    grid = torch.linspace(0, 1, 5, dtype=torch.float64)
    x = torch.tensor([0.1, 0.4, 0.9, 0.6], dtype=torch.float64, requires_grad=True)
    return x, grid, torch.sin(3 * grid).requires_grad_()


gradsmith_inputs = {"TableLookup": example}
