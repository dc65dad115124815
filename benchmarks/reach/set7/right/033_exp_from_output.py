import torch
from torch.autograd import Function


class ClippedExpm1(Function):
    """exp(x) - 1; backward knows the output only."""

    @staticmethod
    def forward(x, scale):
        if not x.is_floating_point():
            raise TypeError("real input expected")
        return torch.expm1(x) * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (y + ctx.scale), None


gradsmith_inputs = {"ClippedExpm1": lambda: (torch.randn(3, 4, requires_grad=True), 2.0)}
