# expect: intermediate-saved
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        x, s = ctx.saved_tensors
        return grad_output * (s + x * s * (1 - s))


gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
