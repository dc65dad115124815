import math

import torch
from torch.autograd import Function


class SoftFakeQuant(Function):
    """Per-channel s * softround(x / s) with softround(v) = v - sin(2 pi v) / (2 pi); channels on `axis`."""

    @staticmethod
    def forward(ctx, x, scale, axis=0):
        if x.is_complex() or scale.is_complex():
            raise TypeError("real tensors expected")
        if scale.dim() != 1 or scale.size(0) != x.size(axis):
            raise ValueError("one scale per channel")
        ctx.save_for_backward(x, scale)
        ctx.axis = axis % x.dim()
        shape = [1] * x.dim()
        shape[ctx.axis] = -1
        s = scale.view(shape)
        v = x / s
        return s * (v - torch.sin(2 * math.pi * v) / (2 * math.pi))

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        shape = [1] * x.dim()
        shape[ctx.axis] = -1
        v = x / scale.view(shape)
        slope = 1 - torch.cos(2 * math.pi * v)
        grad_x = grad_output * slope
        local = v - torch.sin(2 * math.pi * v) / (2 * math.pi) - v * slope
        grad_scale = (grad_output * local).movedim(ctx.axis, 0).flatten(1).sum(1)
        return grad_x, grad_scale, None


gradsmith_inputs = {
    "SoftFakeQuant": lambda: (torch.randn(4, 4, requires_grad=True), torch.rand(4).add(0.5).requires_grad_(), 0)
}
