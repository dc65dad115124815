import torch
from torch.autograd.function import once_differentiable


class OnePole(torch.autograd.Function):
    """y[n] = a y[n-1] + x[n] for real x (T,), with y[-1] = state; a and state are 0-dim."""

    @staticmethod
    def forward(ctx, x, a, state):
        if x.is_complex() or x.dim() != 1 or a.dim() or state.dim() or x.dtype != a.dtype or x.dtype != state.dtype:
            raise ValueError("x (T,), a and state 0-dim, of one dtype")
        y = torch.empty_like(x)
        last = state
        for n in range(x.numel()):
            last = a * last + x[n]
            y[n] = last
        ctx.save_for_backward(y, a, state)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, a, state = ctx.saved_tensors
        gx = torch.empty_like(grad)
        carry = grad.new_zeros(())
        for n in reversed(range(y.numel())):
            carry = grad[n] + a * carry
            gx[n] = carry
        ga = (gx[1:] * y[:-1]).sum()
        gs = grad.new_zeros(())
        if y.numel():
            ga = ga + gx[0] * state
            gs = a * gx[0]
        return gx, ga, gs


gradsmith_inputs = {
    "OnePole": lambda: (
        torch.randn(8, requires_grad=True),
        torch.tensor(0.6, requires_grad=True),
        torch.tensor(0.0, requires_grad=True),
    )
}
