import torch
from torch.autograd.function import once_differentiable


class HighwayMix(torch.autograd.Function):
    """t * h + (1 - t) * x with t = sigmoid(gate)."""

    @staticmethod
    def forward(ctx, x, h, gate):
        t = torch.sigmoid(gate)
        ctx.save_for_backward(x, h, t)
        return torch.lerp(x, h, t)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, h, t = ctx.saved_tensors
        g_gate = grad_output * (h - x) * t * (1 - t)
        return grad_output * (1 - t), grad_output * t, g_gate


gradsmith_inputs = {
    "HighwayMix": lambda: tuple(torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
}
