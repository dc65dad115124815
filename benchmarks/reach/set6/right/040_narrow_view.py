import torch


class TailView(torch.autograd.Function):
    """The last n rows of x, as a view (no copy)."""

    @staticmethod
    def forward(ctx, x, n):
        if x.dim() == 0 or not 0 <= n <= x.shape[0]:
            raise ValueError("x has not that many rows")
        ctx.skipped = x.shape[0] - n
        return x.narrow(0, ctx.skipped, n)

    @staticmethod
    def backward(ctx, g):
        head = g.new_zeros(ctx.skipped, *g.shape[1:])
        return torch.cat([head, g]), None


gradsmith_inputs = {"TailView": lambda: (torch.randn(5, 2, dtype=torch.float64, requires_grad=True), 3)}
