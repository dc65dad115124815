import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class BorderSample1d(Function):
    """Linear interpolation of `signal` (B, C, L) at `pos` (B, P), in samples. Outside, the border value is used."""

    @staticmethod
    def forward(ctx, signal, pos):
        if not (signal.is_floating_point() and pos.is_floating_point()):
            raise TypeError("real tensors expected")
        length = signal.size(-1)
        if length < 2:
            raise ValueError("at least two samples are needed")
        p = pos.clamp(0, length - 1)
        left = p.floor().clamp(max=length - 2)
        frac = (p - left)[:, None]
        left = left.long()[:, None].expand(-1, signal.size(1), -1)
        a, b = signal.gather(2, left), signal.gather(2, left + 1)
        ctx.save_for_backward(signal, pos)
        return a + (b - a) * frac

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        signal, pos = ctx.saved_tensors
        length = signal.size(-1)
        p = pos.clamp(0, length - 1)
        left = p.floor().clamp(max=length - 2)
        frac = (p - left)[:, None]
        left = left.long()[:, None].expand(-1, signal.size(1), -1)
        grad_signal = torch.zeros_like(signal)
        grad_signal.scatter_add_(2, left, (grad_out * (1 - frac)).to(signal.dtype))
        grad_signal.scatter_add_(2, left + 1, (grad_out * frac).to(signal.dtype))
        slope = signal.gather(2, left + 1) - signal.gather(2, left)
        grad_pos = (grad_out * slope).sum(1)
        return grad_signal, grad_pos


gradsmith_inputs = {
    "BorderSample1d": lambda: (
        torch.randn(2, 3, 8, requires_grad=True),
        (torch.rand(2, 5) * 6 + 0.5).requires_grad_(),
    )
}
