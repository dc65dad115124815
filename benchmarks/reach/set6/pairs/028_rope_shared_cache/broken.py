import torch


class RotaryEmbedding(torch.autograd.Function):
    """Rotates the pairs (x[..., i], x[..., i + D/2]) of (T, D) by position * base^(-2i/D)."""

    _tables = {}

    @staticmethod
    def forward(ctx, x, base=10000.0):
        t, d = x.shape
        if d % 2 or base <= 0:
            raise ValueError("even width and a positive base, please")
        freq = base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
        angle = torch.arange(t, dtype=x.dtype)[:, None] * freq
        ctx.key = (t, d, x.dtype)
        RotaryEmbedding._tables[ctx.key] = angle.cos(), angle.sin()
        c, s = RotaryEmbedding._tables[ctx.key]
        a, b = x.chunk(2, -1)
        return torch.cat([a * c - b * s, a * s + b * c], -1)

    @staticmethod
    def backward(ctx, grad):
        c, s = RotaryEmbedding._tables[ctx.key]
        a, b = grad.chunk(2, -1)
        return torch.cat([a * c + b * s, b * c - a * s], -1), None


def example():
    torch.manual_seed(0)
    return torch.randn(3, 4, dtype=torch.float64, requires_grad=True), 10000.0


gradsmith_inputs = {"RotaryEmbedding": example}
