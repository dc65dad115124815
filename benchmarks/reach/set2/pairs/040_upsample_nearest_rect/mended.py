import torch


class NearestUpsample(torch.autograd.Function):
    """Nearest-neighbour upsampling of (B, C, H, W) by an integer factor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor, ctx.shape = factor, x.shape
        return x.repeat_interleave(factor, -2).repeat_interleave(factor, -1)

    @staticmethod
    def backward(ctx, grad_output):
        b, c, h, w = ctx.shape
        s = ctx.factor
        blocks = grad_output.reshape(b, c, h, s, w, s)
        return blocks.sum((3, 5)).reshape(ctx.shape), None


gradsmith_inputs = {"NearestUpsample": lambda: (torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True), 2)}
