import torch


class AttnWithLSE(torch.autograd.Function):
    """softmax(q k^T) v and its log-sum-exp, to be merged across blocks."""

    @staticmethod
    def forward(ctx, q, k, v):
        s = q @ k.t()
        lse = torch.logsumexp(s, 1)
        p = (s - lse[:, None]).exp()
        out = p @ v
        ctx.save_for_backward(q, k, v, p)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gout, glse):
        q, k, v, p = ctx.saved_tensors
        gp = gout @ v.t()
        gs = p * (gp - (gp * p).sum(1, keepdim=True))
        return gs @ k, gs.t() @ q, p.t() @ gout


gradsmith_inputs = {
    "AttnWithLSE": lambda: tuple(torch.randn(n, 3, requires_grad=True) for n in (4, 5, 5))
}
