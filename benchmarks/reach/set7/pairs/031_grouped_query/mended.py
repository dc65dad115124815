import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class GroupedQueryAttention(Function):
    """Attention where H / G query heads share one of G key/value heads. q (B, H, L, D); k, v (B, G, L, D)."""

    @staticmethod
    def forward(ctx, q, k, v, scale):
        if q.dim() != 4 or q.is_complex() or k.is_complex() or v.is_complex() or k.shape != v.shape:
            raise TypeError("real (B, heads, L, D) tensors expected")
        if q.size(1) % k.size(1) or q.size(0) != k.size(0):
            raise ValueError("the number of query heads must be a multiple of that of key heads")
        scale = float(scale)
        rep = q.size(1) // k.size(1)
        kk, vv = k.repeat_interleave(rep, 1), v.repeat_interleave(rep, 1)
        p = (q @ kk.mT * scale).softmax(-1)
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        return p @ vv

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensors
        g = k.size(1)
        rep = q.size(1) // g
        kk, vv = k.repeat_interleave(rep, 1), v.repeat_interleave(rep, 1)
        dvv = p.mT @ do
        dp = do @ vv.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        dkk = ds.mT @ q
        dk = dkk.unflatten(1, (g, rep)).sum(2)
        dv = dvv.unflatten(1, (g, rep)).sum(2)
        return ds @ kk, dk, dv, None


gradsmith_inputs = {
    "GroupedQueryAttention": lambda: (
        torch.randn(1, 4, 3, 2, requires_grad=True),
        torch.randn(1, 1, 3, 2, requires_grad=True),
        torch.randn(1, 1, 3, 2, requires_grad=True),
        0.7,
    )
}
