import torch


class Median(torch.autograd.Function):
    """Median over the last dimension; the mean of the two middle values if their number is even."""

    @staticmethod
    def forward(ctx, x):
        if x.dim() == 0 or x.shape[-1] == 0:
            raise ValueError("no values")
        n = x.shape[-1]
        values, order = torch.sort(x, dim=-1, stable=True)
        lo, hi = (n - 1) // 2, n // 2
        ctx.save_for_backward(order)
        return (values[..., lo] + values[..., hi]) / 2

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        n = order.shape[-1]
        gx = torch.zeros(order.shape, dtype=g.dtype)
        half = g.unsqueeze(-1) / 2
        for k in ((n - 1) // 2, n // 2):
            gx = gx.scatter_add(-1, order[..., k:k + 1], half)
        return gx


gradsmith_inputs = {"Median": lambda: (torch.randn(2, 5, dtype=torch.float64, requires_grad=True),)}
