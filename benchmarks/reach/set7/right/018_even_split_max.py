import torch
from torch.autograd import Function


class EvenMax(Function):
    """Maximum over the last axis; equal maxima share the gradient."""

    @staticmethod
    def forward(ctx, x):
        if not x.is_floating_point():
            raise TypeError("real input expected")
        top = x.amax(-1)
        ctx.save_for_backward(x, top)
        return top

    @staticmethod
    def backward(ctx, grad):
        x, top = ctx.saved_tensors
        hit = (x == top.unsqueeze(-1)).to(grad.dtype)
        return hit * (grad / hit.sum(-1)).unsqueeze(-1)


gradsmith_inputs = {"EvenMax": lambda: (torch.randn(4, 5, requires_grad=True),)}
