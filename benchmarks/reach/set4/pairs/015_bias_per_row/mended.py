import torch


class AddBias(torch.autograd.Function):
    """x * scale + bias, where bias broadcasts to x."""

    @staticmethod
    def forward(ctx, x, bias, scale=2.0):
        ctx.shape, ctx.scale = bias.shape, scale
        return x * scale + bias

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, grad.sum_to_size(ctx.shape), None


gradsmith_inputs = {"AddBias": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(1, 3, requires_grad=True),)}
