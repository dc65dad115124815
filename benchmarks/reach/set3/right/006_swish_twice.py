import torch
from torch.autograd.function import once_differentiable


class Swish(torch.autograd.Function):
    """x * sigmoid(x) whose second derivative is written by hand, too."""

    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise TypeError("real x")
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return SwishSlope.apply(grad, x)


class SwishSlope(torch.autograd.Function):
    """grad * d/dx (x sigmoid(x)) for grad and x of one shape."""

    @staticmethod
    def forward(ctx, grad, x):
        if grad.shape != x.shape or x.is_complex():
            raise ValueError("one shape, real")
        s = torch.sigmoid(x)
        ctx.save_for_backward(grad, x)
        return grad * s * (1 + x * (1 - s))

    @staticmethod
    @once_differentiable
    def backward(ctx, gg):
        grad, x = ctx.saved_tensors
        s = torch.sigmoid(x)
        first = s * (1 + x * (1 - s))
        second = s * (1 - s) * (2 + x * (1 - 2 * s))
        return gg * first, gg * grad * second


gradsmith_inputs = {
    "Swish": lambda: (torch.randn(5, requires_grad=True),),
    "SwishSlope": lambda: (torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)),
}
