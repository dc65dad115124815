# expect: data-attr
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x.data**2


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
