import torch


class Softplus(torch.autograd.Function):
    """log(1 + exp(beta x)) / beta, and x itself where beta * x > threshold."""

    @staticmethod
    def forward(ctx, x, beta=1.0, threshold=20.0):
        if beta <= 0 or threshold < 0:
            raise ValueError("beta must be positive, threshold not negative")
        ctx.save_for_backward(x)
        ctx.beta, ctx.threshold = beta, threshold
        z = x * beta
        return torch.where(z > threshold, x, torch.logaddexp(z, torch.zeros_like(z)) / beta)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        linear = x > ctx.threshold
        return torch.where(linear, grad, grad * torch.sigmoid(ctx.beta * x)), None, None


gradsmith_inputs = {"Softplus": lambda: (torch.randn(4, 5, requires_grad=True) , 2.0)}
