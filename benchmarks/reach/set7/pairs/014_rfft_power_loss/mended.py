import torch
from torch.autograd import Function


class SpectralPowerLoss(Function):
    """Weighted one-sided power spectrum: sum_k w_k |X_k|^2 per signal, X = rfft(x)."""

    @staticmethod
    def forward(ctx, x, weight):
        if x.is_complex() or weight.is_complex():
            raise TypeError("real signal expected")
        if weight.shape != (x.size(-1) // 2 + 1,):
            raise ValueError("one weight per frequency bin")
        ctx.save_for_backward(x, weight)
        return (torch.fft.rfft(x).abs().square() * weight).sum(-1)

    @staticmethod
    def backward(ctx, grad_out):
        x, weight = ctx.saved_tensors
        n = x.size(-1)
        spec = torch.fft.rfft(x)
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            half = torch.ones_like(weight)
            half[0] = 2.0
            if n % 2 == 0:
                half[-1] = 2.0
            grad_x = torch.fft.irfft(spec * (weight * half), n=n) * n * grad_out[..., None]
        if ctx.needs_input_grad[1]:
            power = spec.real**2 + spec.imag**2
            grad_w = (power * grad_out[..., None]).reshape(-1, weight.numel()).sum(0)
        return grad_x, grad_w


gradsmith_inputs = {"SpectralPowerLoss": lambda: (torch.randn(2, 8, requires_grad=True), torch.rand(5, requires_grad=True))}
