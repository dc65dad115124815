import torch


class LinearResize(torch.autograd.Function):
    """Linear interpolation of (N, L) to `size` samples."""

    @staticmethod
    def forward(ctx, x, size, align_corners=True):
        n = x.shape[-1]
        i = torch.arange(size, dtype=x.dtype)
        at = i * (n - 1) / (size - 1) if align_corners else ((i + 0.5) * n / size - 0.5).clamp(0, n - 1)
        ctx.n, ctx.size, ctx.align_corners = n, size, align_corners
        low = at.floor().long().clamp(max=n - 2)
        w = at - low
        return x[:, low] * (1 - w) + x[:, low + 1] * w

    @staticmethod
    def backward(ctx, grad):
        n, size = ctx.n, ctx.size
        i = torch.arange(size, dtype=grad.dtype)
        at = i * (n - 1) / (size - 1) if ctx.align_corners else ((i + 0.5) * n / size - 0.5).clamp(0, n - 1)
        low = at.floor().long().clamp(max=n - 2)
        w = at - low
        g = grad.new_zeros(grad.shape[0], n)
        g.index_add_(1, low, grad * (1 - w))
        g.index_add_(1, low + 1, grad * w)
        return g, None, None


gradsmith_inputs = {"LinearResize": lambda: (torch.randn(2, 5, requires_grad=True), 8,)}
