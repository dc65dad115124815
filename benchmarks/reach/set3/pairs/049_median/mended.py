import torch


class RowMedian(torch.autograd.Function):
    """Median of the rows of x (N, C), C >= 1; the mean of the two middle entries if C is even."""

    @staticmethod
    def forward(ctx, x):
        if x.dim() != 2 or x.shape[1] < 1:
            raise ValueError("x (N, C)")
        y, order = x.sort(1)
        n = x.shape[1]
        lo, hi = (n - 1) // 2, n // 2
        ctx.save_for_backward(order[:, lo], order[:, hi])
        ctx.n = n
        return (y[:, lo] + y[:, hi]) / 2

    @staticmethod
    def backward(ctx, grad):
        lo, hi = ctx.saved_tensors
        gx = grad.new_zeros(grad.shape[0], ctx.n)
        gx = gx.scatter_add(1, lo[:, None], grad[:, None] / 2)
        return gx.scatter_add(1, hi[:, None], grad[:, None] / 2)


gradsmith_inputs = {"RowMedian": lambda: (torch.randn(4, 5, requires_grad=True),)}
