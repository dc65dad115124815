import torch


def rotation(length, dim, offset, dtype):
    freq = 1.0 / 10000 ** (torch.arange(0, dim, 2, dtype=dtype) / dim)
    angle = torch.arange(offset, offset + length, dtype=dtype)[:, None] * freq
    return angle.cos(), angle.sin()


class RotaryEmbedding(torch.autograd.Function):
    """Rotary position embedding of (B, T, D), D even; offset is the number of tokens already in the cache."""

    @staticmethod
    def forward(ctx, x, offset=0):
        ctx.offset = offset
        cos, sin = rotation(x.size(-2), x.size(-1), offset, x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    @staticmethod
    def backward(ctx, grad_output):
        cos, sin = rotation(grad_output.size(-2), grad_output.size(-1), ctx.offset, grad_output.dtype)
        a, b = grad_output.chunk(2, dim=-1)
        return torch.cat([a * cos + b * sin, b * cos - a * sin], dim=-1), None


gradsmith_inputs = {"RotaryEmbedding": lambda: (torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True),)}
