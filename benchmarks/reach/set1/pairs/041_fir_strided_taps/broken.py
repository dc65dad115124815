"""FIR filter with trainable taps."""
import torch
import torch.nn.functional as F


class FIRFilter(torch.autograd.Function):
    """Valid correlation of a signal (T,) with taps (K,)."""

    @staticmethod
    def forward(ctx, signal, taps):
        ctx.save_for_backward(signal, taps)
        return signal.unfold(0, taps.shape[0], 1) @ taps

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        signal, taps = ctx.saved_tensors
        n, k = g.shape[0], taps.shape[0]
        windows = signal.as_strided((n, k), (1, 1))
        grad_taps = windows.t() @ g
        grad_signal = F.conv_transpose1d(g[None, None], taps[None, None])[0, 0]
        return grad_signal, grad_taps


gradsmith_inputs = {
    "FIRFilter": lambda: (torch.randn(12, requires_grad=True), torch.randn(4, requires_grad=True))
}
