import torch
from torch.autograd.function import once_differentiable


class GroupNormFunction(torch.autograd.Function):
    """Group norm of (N, C, L) without affine part; C is divisible by groups."""

    @staticmethod
    def forward(ctx, x, groups, eps=1e-5):
        n, c, length = x.shape
        xg = x.reshape(n, groups, -1)
        mean = xg.mean(-1, keepdim=True)
        rstd = (xg.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        xhat = (xg - mean) * rstd
        ctx.save_for_backward(xhat, rstd)
        ctx.shape = x.shape
        return xhat.reshape(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        xhat, rstd = ctx.saved_tensors
        n, c, length = ctx.shape
        g = grad_output.reshape(xhat.shape)
        count = xhat.size(-1)
        s1 = g.sum(-1, keepdim=True)
        s2 = (g * xhat).sum(-1, keepdim=True)
        dx = rstd * (g - (s1 + xhat * s2) / count)
        return dx.reshape(ctx.shape), None, None


gradsmith_inputs = {"GroupNormFunction": lambda: (torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), 1)}
