import torch
from torch.autograd import Function


class IntPower(Function):
    """x^n for an integer n of either sign, right at zero and for negative x."""

    @staticmethod
    def forward(ctx, x, n):
        if not isinstance(n, int):
            raise TypeError("n must be an int")
        ctx.save_for_backward(x)
        ctx.n = n
        return x.pow(n)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = ctx.n
        if n == 0:
            return torch.zeros_like(x), None
        slope = n * x.pow(n - 1)
        return grad * (slope.conj() if x.is_complex() else slope), None


gradsmith_inputs = {"IntPower": lambda: (torch.randn(3, 4, requires_grad=True), 3)}
