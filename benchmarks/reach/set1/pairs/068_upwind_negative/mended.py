import torch


class Upwind(torch.autograd.Function):
    """One upwind advection step on a periodic grid: c (N,), velocity v (N,) of any sign (|v| <= 1)."""

    @staticmethod
    def forward(ctx, c, v):
        left = c - c.roll(1)
        right = c.roll(-1) - c
        ctx.save_for_backward(c, v)
        return c - torch.where(v > 0, v * left, v * right)

    @staticmethod
    def backward(ctx, g):
        c, v = ctx.saved_tensors
        gvp = g * v.clamp_min(0)
        gvn = g * v.clamp_max(0)
        gc = g - gvp + gvp.roll(-1) - gvn.roll(1) + gvn
        gv = -g * torch.where(v > 0, c - c.roll(1), c.roll(-1) - c)
        return gc, gv


gradsmith_inputs = {
    "Upwind": lambda: (torch.randn(8, requires_grad=True), torch.rand(8).mul(0.8).add(0.1).requires_grad_())
}
