import torch


class TableLookup(torch.autograd.Function):
    """Linear lookup of table (N,) at positions in [0, N - 1]; raises outside."""

    @staticmethod
    def forward(ctx, table, pos):
        n = table.shape[0]
        if pos.numel() and (pos.min() < 0 or pos.max() > n - 1):
            raise IndexError("position outside of the table")
        i = pos.detach().floor().long().clamp(max=n - 2)
        ctx.save_for_backward(table, pos, i)
        f = pos - i
        return table[i] + f * (table[i + 1] - table[i])

    @staticmethod
    def backward(ctx, g):
        table, pos, i = ctx.saved_tensors
        f = pos - i
        gt = torch.zeros_like(table).index_add(0, i, g * (1 - f)).index_add(0, i + 1, g * f)
        return gt, g * (table[i + 1] - table[i])


gradsmith_inputs = {
    "TableLookup": lambda: (
        torch.randn(7, dtype=torch.float64, requires_grad=True),
        (0.1 + 5.8 * torch.rand(5, dtype=torch.float64)).requires_grad_(),
    )
}
