import torch


class SparseMatMul(torch.autograd.Function):
    """A @ x for a square sparse A given as row, col and value vectors (entries of one place add up)."""

    @staticmethod
    def forward(ctx, row, col, value, x):
        if value.is_complex() or x.is_complex():
            raise ValueError("not for complex input")
        if not row.shape == col.shape == value.shape or row.dim() != 1 or x.dim() != 2:
            raise ValueError("row, col and value must be vectors of one length, x a matrix")
        for i in (row, col):
            if i.numel() and (i.min() < 0 or i.max() >= x.shape[0]):
                raise ValueError("index out of range")
        ctx.save_for_backward(row, col, value, x)
        return torch.zeros_like(x).index_add_(0, row, value[:, None] * x[col])

    @staticmethod
    def backward(ctx, g):
        row, col, value, x = ctx.saved_tensors
        g_value = (g[row] * x[col]).sum(1)
        g_x = torch.zeros_like(x).index_add(0, col, value[:, None] * g[row])
        return None, None, g_value, g_x


def undirected():
    torch.manual_seed(0)
    row, col = torch.tensor([0, 1, 1, 2, 3, 3]), torch.tensor([1, 0, 2, 1, 3, 3])
    value = torch.tensor([0.5, 0.5, 2.0, 2.0, 1.0, 1.0], dtype=torch.float64, requires_grad=True)
    return row, col, value, torch.randn(4, 2, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"SparseMatMul": undirected}
