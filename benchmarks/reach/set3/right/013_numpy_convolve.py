import numpy
import torch
from torch.autograd.function import once_differentiable


class NumpyConvolve(torch.autograd.Function):
    """Full convolution of two real vectors of one dtype, done by NumPy."""

    @staticmethod
    def forward(ctx, a, b):
        if a.dtype != b.dtype or a.dtype not in (torch.float32, torch.float64) or a.dim() != 1 or b.dim() != 1:
            raise TypeError("two real vectors of one dtype")
        ctx.save_for_backward(a, b)
        return torch.from_numpy(numpy.convolve(a.detach().numpy(), b.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = (v.detach().numpy() for v in ctx.saved_tensors)
        g = grad.numpy()
        return torch.from_numpy(correlate(g, b)), torch.from_numpy(correlate(g, a))


def correlate(g, kernel):
    windows = numpy.lib.stride_tricks.sliding_window_view(g, kernel.size)
    return numpy.ascontiguousarray(windows @ kernel)


gradsmith_inputs = {"NumpyConvolve": lambda: (torch.randn(6, requires_grad=True), torch.randn(3, requires_grad=True))}
