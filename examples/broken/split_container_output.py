# expect: container-output
import torch


class SquareAndCube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return [x**2, x**3]

    @staticmethod
    def backward(ctx, grad_square, grad_cube):
        (x,) = ctx.saved_tensors
        return grad_square * 2 * x + grad_cube * 3 * x**2


gradsmith_inputs = {"SquareAndCube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
