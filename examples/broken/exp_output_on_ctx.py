# expect: reference-cycle
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.slope = lambda: y
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.slope()


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
