from torch.autograd.function import once_differentiable
import torch


class OnlineAttentionRow(torch.autograd.Function):
    """Attention of one query (D,) over keys (T, D) and values (T, E) in blocks, never holding all scores."""

    BLOCK = 3

    @staticmethod
    def forward(ctx, q, k, v):
        m = q.new_full((), float("-inf"))
        denom, acc = q.new_zeros(()), v.new_zeros(v.size(1))
        for kb, vb in zip(k.split(OnlineAttentionRow.BLOCK), v.split(OnlineAttentionRow.BLOCK)):
            s = kb @ q
            new = torch.maximum(m, s.max())
            w = torch.exp(s - new)
            fix = torch.exp(m - new)
            denom, acc, m = denom * fix + w.sum(), acc * fix + w @ vb, new
        out = acc / denom
        ctx.save_for_backward(q, k, v, out, m + denom.log())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        q, k, v, out, lse = ctx.saved_tensors
        delta = grad_output @ out
        dq, dk, dv = torch.zeros_like(q), torch.empty_like(k), torch.empty_like(v)
        for lo in range(0, k.size(0), OnlineAttentionRow.BLOCK):
            rows = slice(lo, lo + OnlineAttentionRow.BLOCK)
            p = torch.exp(k[rows] @ q - lse)
            ds = p * (v[rows] @ grad_output - delta)
            dq += ds @ k[rows]
            dk[rows] = ds[:, None] * q
            dv[rows] = p[:, None] * grad_output
        return dq, dk, dv


gradsmith_inputs = {
    "OnlineAttentionRow": lambda: (
        torch.randn(4, dtype=torch.float64, requires_grad=True),
        torch.randn(7, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(7, 2, dtype=torch.float64, requires_grad=True),
    )
}
