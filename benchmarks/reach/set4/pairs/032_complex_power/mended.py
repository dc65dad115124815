import torch


class Energy(torch.autograd.Function):
    """|x|^2 of real or complex numbers, times a filter of the same type."""

    @staticmethod
    def forward(ctx, x, h):
        y = x * h
        ctx.save_for_backward(x, h)
        return (y * y.conj()).real

    @staticmethod
    def backward(ctx, grad):
        x, h = ctx.saved_tensors
        return 2 * grad * x * (h * h.conj()), 2 * grad * h * (x * x.conj())


gradsmith_inputs = {"Energy": lambda: (torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True),)}
