import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class DirtyExp(Function):
    """Writes exp(x) over a fresh product, gives it back as the same tensor, and counts what overflowed."""

    @staticmethod
    def forward(ctx, buffer, limit):
        if not buffer.is_floating_point():
            raise TypeError("real buffer expected")
        limit = float(limit)
        over = buffer > limit
        buffer.clamp_(max=limit).exp_()
        ctx.mark_dirty(buffer)
        count = over.sum()
        ctx.mark_non_differentiable(count)
        ctx.save_for_backward(buffer, over)
        return buffer, count

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        out, over = ctx.saved_tensors
        return (grad * out).masked_fill(over, 0.0), None


def safe_exp(x, limit=3.0):
    return DirtyExp.apply(x * 1, limit)


def _inputs():
    base = torch.randn(3, 4, requires_grad=True)
    return base * 1, 1.0


gradsmith_inputs = {"DirtyExp": _inputs}
