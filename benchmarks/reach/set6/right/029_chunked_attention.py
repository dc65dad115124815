import torch
from torch.autograd.function import once_differentiable


class ChunkedAttention(torch.autograd.Function):
    """softmax(q k^T / sqrt(d)) v over key chunks with a running maximum; stores only the row's log-sum-exp."""

    @staticmethod
    def forward(ctx, q, k, v, chunk=2):
        if q.dim() != 2 or k.dim() != 2 or v.dim() != 2 or q.shape[1] != k.shape[1] or k.shape[0] != v.shape[0]:
            raise ValueError("q (T, D), k (S, D), v (S, E)")
        if k.shape[0] == 0 or q.shape[1] == 0 or chunk < 1:
            raise ValueError("no keys or no chunk")
        scale = q.shape[1] ** -0.5
        top = q.new_full((q.shape[0], 1), -float("inf"))
        total, acc = torch.zeros_like(top), q.new_zeros(q.shape[0], v.shape[1])
        for kc, vc in zip(k.split(chunk), v.split(chunk)):
            s = q @ kc.t() * scale
            new = torch.maximum(top, s.amax(1, keepdim=True))
            e, shrink = (s - new).exp(), (top - new).exp()
            total, acc, top = total * shrink + e.sum(1, keepdim=True), acc * shrink + e @ vc, new
        out, lse = acc / total, top + total.log()
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.chunk, ctx.scale = chunk, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        q, k, v, out, lse = ctx.saved_tensors
        delta = (g * out).sum(1, keepdim=True)
        gq, gk, gv = torch.zeros_like(q), [], []
        for kc, vc in zip(k.split(ctx.chunk), v.split(ctx.chunk)):
            p = (q @ kc.t() * ctx.scale - lse).exp()
            gs = p * (g @ vc.t() - delta) * ctx.scale
            gq = gq + gs @ kc
            gk.append(gs.t() @ q)
            gv.append(p.t() @ g)
        return gq, torch.cat(gk), torch.cat(gv), None


def example():
    torch.manual_seed(0)
    return tuple(torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((3, 2), (5, 2), (5, 4)))


gradsmith_inputs = {"ChunkedAttention": example}
