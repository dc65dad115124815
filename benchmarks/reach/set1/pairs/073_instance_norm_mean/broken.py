import torch


class InstanceNorm(torch.autograd.Function):
    """Normalise (N, C, L) over L."""

    @staticmethod
    def forward(ctx, x, eps=1e-5):
        mu = x.mean(-1, keepdim=True)
        inv = (x.var(-1, keepdim=True, unbiased=False) + eps).rsqrt()
        y = (x - mu) * inv
        ctx.save_for_backward(y, inv)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        y, inv = ctx.saved_tensors
        proj = y * (g * y).mean(-1, keepdim=True)
        return inv * (g - proj), None


gradsmith_inputs = {"InstanceNorm": lambda: (torch.randn(2, 3, 7, requires_grad=True),)}
