import torch
from torch.autograd import Function


class SafeNorm(Function):
    """Euclidean norm of the last axis with the subgradient zero at the origin."""

    @staticmethod
    def forward(ctx, x):
        if not x.is_floating_point():
            raise TypeError("real input expected")
        ctx.save_for_backward(x)
        return x.norm(dim=-1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        sq = x.square().sum(-1, keepdim=True)
        return grad.unsqueeze(-1) * torch.where(sq > 0, x / sq.masked_fill(sq == 0, 1.0).sqrt(), torch.zeros_like(x))


gradsmith_inputs = {"SafeNorm": lambda: (torch.randn(4, 3, requires_grad=True),)}
