import torch


class FftCausalFilter(torch.autograd.Function):
    """Causal filtering of real x (..., T) with taps (K,), K <= T, by padded FFTs."""

    @staticmethod
    def forward(ctx, x, taps):
        if x.dim() < 1 or taps.dim() != 1 or not 1 <= taps.numel() <= x.shape[-1] or x.dtype != taps.dtype:
            raise ValueError("x (..., T), taps (K,), K <= T, one dtype")
        size = x.shape[-1] + taps.numel()
        ctx.save_for_backward(x, taps)
        return torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(taps, size), size)[..., : x.shape[-1]]

    @staticmethod
    def backward(ctx, grad):
        x, taps = ctx.saved_tensors
        size = x.shape[-1] + taps.numel()
        g = torch.fft.rfft(grad, size)
        gx = torch.fft.irfft(g * torch.fft.rfft(taps, size).conj(), size)[..., : x.shape[-1]]
        gt = torch.fft.irfft(g * torch.fft.rfft(x, size).conj(), size)[..., : taps.numel()]
        return gx, gt.sum_to_size(taps.shape)


gradsmith_inputs = {"FftCausalFilter": lambda: (torch.randn(2, 8, requires_grad=True), torch.randn(3, requires_grad=True))}
