import torch
from torch.autograd import Function


class GradientReversal(Function):  # gradsmith: surrogate[gradient-reversal]
    """Identity whose gradient is multiplied by -strength (domain adversarial training)."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = float(strength)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.strength, None


gradsmith_inputs = {"GradientReversal": lambda: (torch.randn(3, 4, requires_grad=True), 0.5)}
