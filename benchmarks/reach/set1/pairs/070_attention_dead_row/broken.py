import torch


class MaskedAttention(torch.autograd.Function):
    """Single-head attention; keep (T, S) bool. A query that may see nothing returns zeros."""

    @staticmethod
    def forward(ctx, q, k, v, keep):
        scale = q.shape[-1] ** -0.5
        s = (q @ k.t() * scale).masked_fill(~keep, float("-inf"))
        lse = torch.logsumexp(s, -1, keepdim=True)
        p = torch.exp(s - lse).nan_to_num(0.0)
        ctx.save_for_backward(q, k, v, p, s, lse)
        ctx.scale = scale
        return p @ v

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        q, k, v, p, s, lse = ctx.saved_tensors
        p = torch.exp(s - lse)  # recomputed as in the flash kernel
        gv = p.t() @ g
        gp = g @ v.t()
        gs = p * (gp - (gp * p).sum(-1, keepdim=True)) * ctx.scale
        return gs @ k, gs.t() @ q, gv, None


def _causal(t=5, d=4):
    keep = torch.ones(t, t, dtype=torch.bool).tril()
    q, k, v = (torch.randn(t, d, requires_grad=True) for _ in range(3))
    return q, k, v, keep


gradsmith_inputs = {"MaskedAttention": _causal}
