import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class InplaceLeaky(Function):
    """Leaky ReLU that may overwrite its input, so that only one activation is kept."""

    @staticmethod
    def forward(ctx, x, slope=0.01, inplace=False):
        if not x.is_floating_point():
            raise TypeError("x must be real")
        slope = float(slope)
        positive = x > 0
        factor = torch.where(positive, 1.0, slope).to(x.dtype)
        if inplace:
            out = x.mul_(factor)
            ctx.mark_dirty(x)
        else:
            out = x * factor
        ctx.save_for_backward(out)
        ctx.slope = slope
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return torch.where(out > 0, grad, grad * ctx.slope), None, None


gradsmith_inputs = {"InplaceLeaky": lambda: (torch.randn(3, 4, requires_grad=True), 0.01, False)}
