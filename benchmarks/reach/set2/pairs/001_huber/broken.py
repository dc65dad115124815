import torch
from torch.autograd.function import once_differentiable


class HuberLoss(torch.autograd.Function):
    """Huber loss, summed. Quadratic up to delta, linear beyond; delta is any positive float."""

    @staticmethod
    def forward(ctx, pred, target, delta):
        diff = pred - target
        ctx.save_for_backward(diff)
        ctx.delta = delta
        quad = 0.5 * diff * diff
        lin = delta * (diff.abs() - 0.5 * delta)
        return torch.where(diff.abs() <= delta, quad, lin).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        slope = torch.where(diff.abs() <= ctx.delta, diff, diff.sign())
        return grad_output * slope, -grad_output * slope, None


gradsmith_inputs = {
    "HuberLoss": lambda: (
        torch.tensor([0.2, -0.4, 3.0, -2.5], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.0, 0.1, 0.5, 0.3], dtype=torch.float64),
        1.0,
    )
}
