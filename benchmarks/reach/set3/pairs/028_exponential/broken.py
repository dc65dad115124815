import torch


class Exponential(torch.autograd.Function):
    """exp(rate * x) for real x and a number."""

    @staticmethod
    def forward(ctx, x, rate=1.0):
        if x.is_complex():
            raise ValueError("real x only")
        y = torch.exp(rate * x)
        ctx.rate = rate
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.rate * ctx.y, None


gradsmith_inputs = {"Exponential": lambda: (torch.randn(3, 4, requires_grad=True), 0.7)}
