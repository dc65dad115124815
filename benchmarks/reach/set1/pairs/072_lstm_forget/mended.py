import torch


class LSTMCell(torch.autograd.Function):
    """Pointwise part of an LSTM: gates (B, 4H), c_prev (B, H) -> h, c."""

    @staticmethod
    def forward(ctx, gates, c_prev):
        i, f, g, o = gates.chunk(4, 1)
        i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
        g = g.tanh()
        c = f * c_prev + i * g
        tc = c.tanh()
        ctx.save_for_backward(i, f, g, o, c_prev, c)
        return o * tc, c

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gh, gc):
        i, f, g, o, c_prev, c = ctx.saved_tensors
        tc = c.tanh()
        go = gh * tc * o * (1 - o)
        gc = gc + gh * o * (1 - tc * tc)
        gi = gc * g * i * (1 - i)
        gg = gc * i * (1 - g * g)
        gf = gc * c_prev * f * (1 - f)
        return torch.cat([gi, gf, gg, go], 1), gc * f


gradsmith_inputs = {
    "LSTMCell": lambda: (torch.randn(3, 8, requires_grad=True), torch.randn(3, 2, requires_grad=True))
}
