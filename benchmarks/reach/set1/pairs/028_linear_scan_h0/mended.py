import torch


class LinearScan(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + b_t over dim 0; h0 may be None (zeros)."""

    @staticmethod
    def forward(ctx, a, b, h0=None):
        h = torch.zeros_like(b[0]) if h0 is None else h0
        out = []
        for t in range(a.shape[0]):
            h = a[t] * h + b[t]
            out.append(h)
        out = torch.stack(out)
        ctx.has_h0 = h0 is not None
        ctx.save_for_backward(a, out, *([h0] if ctx.has_h0 else []))
        return out

    @staticmethod
    def backward(ctx, g):
        a, out, *rest = ctx.saved_tensors
        first = rest[0] if ctx.has_h0 else torch.zeros_like(out[0])
        prev = torch.cat([first.unsqueeze(0), out[:-1]])
        db = torch.empty_like(g)
        carry = torch.zeros_like(g[0])
        for t in range(g.shape[0] - 1, -1, -1):
            carry = carry + g[t]
            db[t] = carry
            carry = carry * a[t]
        return db * prev, db, carry if ctx.has_h0 else None


gradsmith_inputs = {
    "LinearScan": lambda: (torch.rand(6, 3).requires_grad_(), torch.randn(6, 3, requires_grad=True))
}
