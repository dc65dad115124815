import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _recursion(u, a):
    y = torch.zeros_like(u)
    order = a.numel() - 1
    for t in range(u.size(-1)):
        acc = u[..., t]
        for k in range(1, min(order, t) + 1):
            acc = acc - a[k] * y[..., t - k]
        y[..., t] = acc
    return y


class AllPole(Function):
    """a[0] y[t] = x[t] - sum_k a[k] y[t - k] along the last axis."""

    @staticmethod
    def forward(ctx, x, a):
        if x.is_complex() or a.is_complex() or a.dim() != 1 or a.numel() < 1:
            raise TypeError("real signal and a vector of coefficients expected")
        if float(a[0]) == 0.0:
            raise ZeroDivisionError("a[0] must not be zero")
        y = _recursion(x / a[0], a / a[0])
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_y):
        a, y = ctx.saved_tensors
        norm = a / a[0]
        v = _recursion(grad_y.flip(-1), norm).flip(-1)
        grad_a = torch.zeros_like(a)
        n = y.size(-1)
        for k in range(min(a.numel(), n)):
            grad_a[k] = -(v[..., k:] * y[..., : n - k]).sum()
        return v, grad_a


gradsmith_inputs = {
    "AllPole": lambda: (torch.randn(2, 8, requires_grad=True), torch.tensor([1.0, -0.6, 0.2]).requires_grad_())
}
