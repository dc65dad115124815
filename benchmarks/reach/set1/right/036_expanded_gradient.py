import torch


class TotalMass(torch.autograd.Function):
    """Sum of all elements times a constant volume."""

    @staticmethod
    def forward(ctx, density, volume):
        ctx.shape = density.shape
        ctx.volume = volume
        return density.sum() * volume

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.volume).expand(ctx.shape), None


gradsmith_inputs = {"TotalMass": lambda: (torch.rand(3, 4, 2).requires_grad_(), 0.125)}
