import torch
import torch.nn.functional as F


def _correlate(signal, taps):
    pad = taps.numel() // 2
    return F.conv1d(signal[:, None], taps[None, None], padding=pad)[:, 0]


class FIRFilter(torch.autograd.Function):
    """Filters the rows of a signal with a fixed odd number of taps, same length out."""

    @staticmethod
    def forward(ctx, signal, taps):
        if signal.is_complex() or taps.is_complex():
            raise ValueError("expected real tensors")
        if signal.dim() != 2 or taps.dim() != 1 or taps.numel() % 2 == 0:
            raise ValueError("signal (N, T), odd number of taps")
        if taps.requires_grad:
            raise ValueError("the taps are fixed")
        ctx.save_for_backward(taps)
        return _correlate(signal, taps)

    @staticmethod
    def backward(ctx, grad):
        (taps,) = ctx.saved_tensors
        return _correlate(grad, taps.flip(0)), None


def lowpass():
    torch.manual_seed(0)
    taps = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    return torch.randn(2, 7, dtype=torch.float64, requires_grad=True), taps


gradsmith_inputs = {"FIRFilter": lowpass}
