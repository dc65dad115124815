import torch


def _angles(length, dim, start, like):
    pos = torch.arange(start, start + length, dtype=like.dtype, device=like.device)
    freq = 10.0 ** (-4.0 * torch.arange(0, dim, 2, dtype=like.dtype, device=like.device) / dim)
    a = pos[:, None] * freq
    return a.cos(), a.sin()


class Rotary(torch.autograd.Function):
    """Rotary embedding of real x (..., T, D), D even; `start` is the position of the first token."""

    @staticmethod
    def forward(ctx, x, start=0):
        if x.is_complex() or x.dim() < 2 or x.shape[-1] % 2:
            raise ValueError("x must be real (..., T, D) with D even")
        cos, sin = _angles(x.shape[-2], x.shape[-1], start, x)
        ctx.start = start
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    @staticmethod
    def backward(ctx, grad):
        cos, sin = _angles(grad.shape[-2], grad.shape[-1], 0, grad)
        a, b = grad[..., 0::2], grad[..., 1::2]
        return torch.stack((a * cos + b * sin, b * cos - a * sin), -1).flatten(-2), None


gradsmith_inputs = {"Rotary": lambda: (torch.randn(2, 5, 6, requires_grad=True),)}
