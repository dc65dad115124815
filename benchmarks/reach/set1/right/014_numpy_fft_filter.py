import numpy as np
import torch


def lowpass(a, keep):
    spec = np.fft.rfft(a, axis=-1)
    spec[..., keep:] = 0
    return np.fft.irfft(spec, n=a.shape[-1], axis=-1)


class NumpyLowpass(torch.autograd.Function):
    """Keep the lowest `keep` (> 0) frequencies of real signals."""

    @staticmethod
    def forward(ctx, x, keep):
        ctx.keep = keep
        return torch.from_numpy(lowpass(x.detach().cpu().numpy(), keep)).to(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        # a symmetric projection
        return torch.from_numpy(lowpass(g.cpu().numpy(), ctx.keep)).to(g), None


gradsmith_inputs = {"NumpyLowpass": lambda: (torch.randn(2, 9, dtype=torch.float64, requires_grad=True), 3)}
