import torch


class GroupNorm(torch.autograd.Function):
    """Group norm of (N, C, L) with a weight per channel."""

    @staticmethod
    def forward(ctx, x, weight, groups, eps=1e-5):
        if x.is_complex() or weight.is_complex():
            raise ValueError("real input only")
        if x.dim() != 3 or weight.shape != (x.shape[1],) or groups < 1 or x.shape[1] % groups:
            raise ValueError("x (N, C, L), weight (C,), C divisible by groups")
        n, c, length = x.shape
        xg = x.reshape(n, groups, -1)
        mean = xg.mean(-1, keepdim=True)
        rstd = (xg.var(-1, correction=0, keepdim=True) + eps).rsqrt()
        xhat = ((xg - mean) * rstd).view(n, c, length)
        ctx.save_for_backward(xhat, rstd, weight)
        ctx.groups = groups
        return xhat * weight[:, None]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        n, c, length = xhat.shape
        grad_weight = (grad_output * xhat).sum((0, 2))
        gh = (grad_output * weight[:, None]).reshape(n, ctx.groups, -1)
        xh = xhat.view(n, ctx.groups, -1)
        m1 = gh.mean(2, keepdim=True)
        m2 = (gh * xh).mean(2, keepdim=True)
        grad_x = (rstd * (gh - m1 - xh * m2)).view(n, c, length)
        return grad_x, grad_weight, None, None


def example():
    g = torch.Generator().manual_seed(1)
    x = torch.randn(2, 4, 3, generator=g, dtype=torch.float64).requires_grad_()
    w = torch.rand(4, generator=g, dtype=torch.float64).requires_grad_()
    return x, w, 1


gradsmith_inputs = {"GroupNorm": example}
