import torch


class ScaleInplace(torch.autograd.Function):
    """x *= factor in place; x must not be a leaf that requires grad."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.mark_dirty(x)
        ctx.factor = factor
        return x.mul_(factor)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def _activation():
    return torch.randn(4, 3, requires_grad=True).clone(), 0.5


gradsmith_inputs = {"ScaleInplace": _activation}
