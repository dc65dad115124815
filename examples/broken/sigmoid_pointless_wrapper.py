# expect: pointless-wrapper
import torch


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)


gradsmith_inputs = {"Sigmoid": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
