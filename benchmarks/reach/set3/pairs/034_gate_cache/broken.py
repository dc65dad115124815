import torch
from torch.autograd.function import once_differentiable


class CachedGate(torch.autograd.Function):
    """x * sigmoid(1.702 x) for real x; the gate is kept for backward."""

    gate = None

    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise ValueError("real x only")
        gate = torch.sigmoid(1.702 * x)
        CachedGate.gate = gate
        ctx.save_for_backward(x)
        return x * gate

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = CachedGate.gate
        return grad * gate * (1 + 1.702 * x * (1 - gate))


gradsmith_inputs = {"CachedGate": lambda: (torch.randn(3, 4, requires_grad=True),)}
