"""Huber loss used by the value head."""
import torch


class HuberLoss(torch.autograd.Function):
    """sum of huber(pred - target); quadratic within delta, linear outside (delta > 0)."""

    @staticmethod
    def forward(ctx, pred, target, delta=1.0):
        err = pred - target
        ctx.save_for_backward(err)
        ctx.delta = delta
        a = err.abs()
        return torch.where(a <= delta, 0.5 * err * err, delta * (a - 0.5 * delta)).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (err,) = ctx.saved_tensors
        g = err.clamp(-ctx.delta, ctx.delta) * grad_output
        return g, -g, None


gradsmith_inputs = {
    "HuberLoss": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64),
        1.0,
    )
}
