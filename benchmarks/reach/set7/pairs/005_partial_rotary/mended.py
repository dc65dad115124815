import torch
from torch.autograd import Function


def _angles(length, rotary_dim, base, like):
    inv = base ** (-torch.arange(0, rotary_dim, 2, dtype=like.dtype, device=like.device) / rotary_dim)
    t = torch.arange(length, dtype=like.dtype, device=like.device)
    return torch.outer(t, inv)


class PartialRotary(Function):
    """Rotary position embedding (half-split layout) on the first `rotary_dim` channels of (B, H, L, D)."""

    @staticmethod
    def forward(ctx, q, rotary_dim, base=10000.0):
        if not q.is_floating_point():
            raise TypeError("q must be real")
        if rotary_dim % 2 or not 0 < rotary_dim <= q.size(-1):
            raise ValueError("rotary_dim must be even and at most the head size")
        ctx.rotary_dim, ctx.base = rotary_dim, base
        ang = _angles(q.size(-2), rotary_dim, base, q)
        cos, sin = ang.cos(), ang.sin()
        a, b = q[..., : rotary_dim // 2], q[..., rotary_dim // 2 : rotary_dim]
        return torch.cat([a * cos - b * sin, b * cos + a * sin, q[..., rotary_dim:]], dim=-1)

    @staticmethod
    def backward(ctx, grad):
        rd = ctx.rotary_dim
        ang = _angles(grad.size(-2), rd, ctx.base, grad)
        cos, sin = ang.cos(), ang.sin()
        ga, gb = grad[..., : rd // 2], grad[..., rd // 2 : rd]
        rotated = torch.cat([ga * cos + gb * sin, gb * cos - ga * sin], dim=-1)
        return torch.cat([rotated, grad[..., rd:]], dim=-1), None, None


gradsmith_inputs = {"PartialRotary": lambda: (torch.randn(1, 2, 5, 8, requires_grad=True), 8, 10000.0)}
