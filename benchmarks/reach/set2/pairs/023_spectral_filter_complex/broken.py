import torch


class FourierFilter(torch.autograd.Function):
    """Multiply the spectrum of a real signal (..., n) by a fixed response (n // 2 + 1), real or complex."""

    @staticmethod
    def forward(ctx, x, response):
        ctx.save_for_backward(response)
        ctx.n = x.size(-1)
        return torch.fft.irfft(torch.fft.rfft(x) * response, n=ctx.n)

    @staticmethod
    def backward(ctx, grad_output):
        (response,) = ctx.saved_tensors
        spectrum = torch.fft.rfft(grad_output)
        return torch.fft.irfft(spectrum * response, n=ctx.n), None


def lowpass(n, cutoff):
    freq = torch.fft.rfftfreq(n, dtype=torch.float64)
    return 1 / (1 + (freq / cutoff) ** 2)


gradsmith_inputs = {
    "FourierFilter": lambda: (torch.randn(2, 8, dtype=torch.float64, requires_grad=True), lowpass(8, 0.2))
}
