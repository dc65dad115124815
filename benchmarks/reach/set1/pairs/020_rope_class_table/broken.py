"""Rotary position embedding, rotate-half form; even head dim."""
import torch


def tables(positions, dim, base=10000.0):
    freq = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = positions.to(torch.float64)[:, None] * freq
    return torch.cat([angle.cos(), angle.cos()], -1), torch.cat([angle.sin(), angle.sin()], -1)


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


class RotaryEmbed(torch.autograd.Function):
    cos = None
    sin = None

    @staticmethod
    def forward(ctx, x, positions):
        cos, sin = tables(positions, x.shape[-1])
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        # the tables are the same for all layers: keep one copy only
        RotaryEmbed.cos, RotaryEmbed.sin = cos, sin
        return x * cos + rotate_half(x) * sin

    @staticmethod
    def backward(ctx, g):
        cos, sin = RotaryEmbed.cos, RotaryEmbed.sin
        return g * cos - rotate_half(g * sin), None


gradsmith_inputs = {"RotaryEmbed": lambda: (torch.randn(2, 5, 8, requires_grad=True), torch.arange(5))}
