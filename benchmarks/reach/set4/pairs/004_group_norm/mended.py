import torch


class GroupNorm(torch.autograd.Function):
    """Group normalisation without weights of (N, C, L)."""

    @staticmethod
    def forward(ctx, x, groups=1, eps=1e-5):
        n = x.shape[0]
        y = x.reshape(n, groups, -1)
        mean = y.mean(-1, keepdim=True)
        inv = (y.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        normed = (y - mean) * inv
        ctx.save_for_backward(normed, inv)
        ctx.groups = groups
        return normed.reshape(x.shape)

    @staticmethod
    def backward(ctx, grad):
        normed, inv = ctx.saved_tensors
        g = grad.reshape(normed.shape)
        dims, whole = (2,), True
        g = inv * (g - g.mean(dims, keepdim=whole) - normed * (g * normed).mean(dims, keepdim=whole))
        return g.reshape(grad.shape), None, None


gradsmith_inputs = {"GroupNorm": lambda: (torch.randn(2, 4, 5, requires_grad=True),)}
