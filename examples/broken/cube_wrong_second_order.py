# expect: wrong-second-order
import torch


class CubeBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return 3 * x**2 * g

    @staticmethod
    def backward(ctx, grad_output):
        x, g = ctx.saved_tensors
        return 3 * x * g * grad_output, 3 * x**2 * grad_output


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return CubeBackward.apply(x, grad_output)


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
