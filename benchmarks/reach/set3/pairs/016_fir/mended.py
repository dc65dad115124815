import torch
import torch.nn.functional as F


class FirSame(torch.autograd.Function):
    """y[n] = sum_k h[k] x[n + c - k] with c = len(h) // 2: centred filtering of real x (T,) with an odd number of taps."""

    @staticmethod
    def forward(ctx, x, taps):
        if x.is_complex() or x.dim() != 1 or taps.dim() != 1 or taps.numel() % 2 == 0:
            raise ValueError("real 1-d tensors, an odd number of taps")
        ctx.save_for_backward(x, taps)
        c = taps.numel() // 2
        return F.pad(x, (c, c)).unfold(0, taps.numel(), 1) @ taps.flip(0)

    @staticmethod
    def backward(ctx, grad):
        x, taps = ctx.saved_tensors
        k = taps.numel()
        c = k // 2
        gx = F.pad(grad, (c, c)).unfold(0, k, 1) @ taps
        gh = (grad @ F.pad(x, (c, c)).unfold(0, k, 1)).flip(0)
        return gx, gh


gradsmith_inputs = {
    "FirSame": lambda: (torch.randn(12, requires_grad=True), torch.tensor([0.25, 0.5, 0.25], requires_grad=True))
}
