import torch


def _matrix(n, m, like):
    """(m, n): linear interpolation with half-pixel centres and clamped borders."""
    u = ((torch.arange(m, dtype=torch.float64) + 0.5) * n / m - 0.5).clamp(0, n - 1)
    lo = u.floor().long()
    f = u - lo
    w = torch.zeros(m, n, dtype=torch.float64)
    w.scatter_add_(1, lo[:, None], (1 - f)[:, None])
    w.scatter_add_(1, (lo + 1).clamp(max=n - 1)[:, None], f[:, None])
    return w.to(like)


class ResizeBilinear(torch.autograd.Function):
    """Bilinear resizing of the last two dims of real x to (height, width), as two matrix products."""

    @staticmethod
    def forward(ctx, x, height, width):
        if x.dim() < 2 or min(*x.shape[-2:], height, width) < 1 or not x.is_floating_point():
            raise ValueError("x (..., H, W), sizes positive")
        ctx.size = x.shape[-2:]
        return _matrix(x.shape[-2], height, x) @ x @ _matrix(x.shape[-1], width, x).t()

    @staticmethod
    def backward(ctx, grad):
        h, w = ctx.size
        return _matrix(h, grad.shape[-2], grad).t() @ grad @ _matrix(w, grad.shape[-1], grad), None, None


gradsmith_inputs = {"ResizeBilinear": lambda: (torch.randn(2, 3, 4, requires_grad=True), 5, 6)}
