import torch


class SplitHeads(torch.autograd.Function):
    """(B, T, 3 H D) -> q, k, v of (B, H, T, D); q is scaled."""

    @staticmethod
    def forward(ctx, qkv, heads, scale):
        b, t, c = qkv.shape
        x = qkv.view(b, t, 3, heads, c // (3 * heads)).permute(2, 0, 3, 1, 4)
        ctx.scale, ctx.shape = scale, qkv.shape
        return x[0] * scale, x[1].clone(), x[2].clone()

    @staticmethod
    def backward(ctx, gq, gk, gv):
        g = torch.stack([gq * ctx.scale, gk, gv])
        return g.permute(1, 3, 0, 2, 4).reshape(ctx.shape), None, None


gradsmith_inputs = {"SplitHeads": lambda: (torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True), 2, 0.5)}
