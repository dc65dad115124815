import torch


class ChannelScale(torch.autograd.Function):
    """Squeeze-excite scaling: (N, C, H, W) * (N, C)."""

    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * s[:, :, None, None]

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        n, c = s.shape
        gx = g * s[:, :, None, None]
        gs = (g.reshape(n, c, -1) * x.reshape(n, c, -1)).sum(-1)
        return gx, gs


gradsmith_inputs = {
    "ChannelScale": lambda: (torch.randn(2, 3, 4, 4, requires_grad=True), torch.rand(2, 3).requires_grad_())
}
