import torch
from torch.autograd import Function


class Spike(Function):  # gradsmith: surrogate[fast-sigmoid]
    """Heaviside spike of a membrane potential; backward is 1 / (1 + alpha |u|)^2."""

    @staticmethod
    def forward(ctx, u, alpha=10.0):
        if not u.is_floating_point():
            raise TypeError("real potential expected")
        ctx.save_for_backward(u)
        ctx.alpha = alpha
        return (u > 0).to(u.dtype)

    @staticmethod
    def backward(ctx, grad):
        (u,) = ctx.saved_tensors
        return grad / (1 + ctx.alpha * u.abs()) ** 2, None


gradsmith_inputs = {"Spike": lambda: (torch.randn(4, 3, requires_grad=True), 10.0)}
