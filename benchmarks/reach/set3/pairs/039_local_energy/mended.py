import torch
from torch.autograd.function import once_differentiable


class LocalEnergy(torch.autograd.Function):
    """(window . taps)^2 for every window of real x (T,) and real taps (K,), K <= T."""

    @staticmethod
    def forward(ctx, x, taps):
        if x.is_complex() or x.dim() != 1 or taps.dim() != 1 or not 1 <= taps.numel() <= x.numel():
            raise ValueError("x (T,), taps (K,) with K <= T")
        ctx.save_for_backward(x, taps)
        return (x.unfold(0, taps.numel(), 1) @ taps).square()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, taps = ctx.saved_tensors
        k = taps.numel()
        windows = x.unfold(0, k, 1)
        g = 2 * grad * (windows @ taps)
        gx = torch.zeros_like(x)
        for j in range(k):
            gx[j : j + g.numel()] += g * taps[j]
        return gx, g @ windows


gradsmith_inputs = {"LocalEnergy": lambda: (torch.randn(9, requires_grad=True), torch.randn(3, requires_grad=True))}
