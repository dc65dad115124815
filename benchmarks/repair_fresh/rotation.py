import torch

KIND = "rotates forwards instead of back"
WRONG = [
    (
        "torch.cat([g1 * cos + g2 * sin, g2 * cos - g1 * sin], dim=-1)",
        "torch.cat([g1 * cos - g2 * sin, g2 * cos + g1 * sin], dim=-1)",
    )
]


class Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin):
        half = x.shape[-1] // 2
        x1, x2 = x[..., :half], x[..., half:]
        ctx.save_for_backward(cos, sin)
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1)

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        g1, g2 = g.chunk(2, dim=-1)
        return torch.cat([g1 * cos + g2 * sin, g2 * cos - g1 * sin], dim=-1), None, None


def _inputs():
    angle = torch.rand(5, 2, dtype=torch.float64)
    return torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True), angle.cos(), angle.sin()


gradsmith_inputs = {"Rotary": _inputs}
