import torch
from torch.autograd.function import once_differentiable


class L2Normalize(torch.autograd.Function):
    """x / max(||x||, eps) along the last dimension, like torch.nn.functional.normalize."""

    @staticmethod
    def forward(ctx, x, eps=1e-3):
        norm = x.norm(dim=-1, keepdim=True)
        denom = norm.clamp(min=eps)
        y = x / denom
        ctx.save_for_backward(y, denom, norm)
        ctx.eps = eps
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        y, denom, norm = ctx.saved_tensors
        radial = y * (grad_output * y).sum(-1, keepdim=True)
        return (grad_output - radial) / denom, None


gradsmith_inputs = {"L2Normalize": lambda: (torch.randn(5, 8, dtype=torch.float64, requires_grad=True) ,)}
