import torch
from torch.autograd.function import once_differentiable


class BatchNorm(torch.autograd.Function):
    """Batch norm of real x (N, C); running statistics are constants and used if not training."""

    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, training=True, eps=1e-5):
        if x.dim() != 2 or x.is_complex() or running_mean.requires_grad or running_var.requires_grad:
            raise ValueError("x must be real (N, C), the running statistics constants")
        for p in (weight, bias, running_mean, running_var):
            if p.shape != x.shape[1:] or p.is_complex():
                raise ValueError("parameters must be real, (C,)")
        if not bool((running_var >= 0).all()):
            raise ValueError("a variance is not negative")
        if training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
        else:
            mean, var = running_mean, running_var
        rstd = (var + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.training = training
        return (x - mean) * rstd * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, mean, rstd = ctx.saved_tensors
        xhat = (x - mean) * rstd
        gw, gb = (grad * xhat).sum(0), grad.sum(0)
        gx = grad * weight * rstd
        n = x.shape[0]
        gx = gx - weight * rstd * (gb + xhat * gw) / n
        return gx, gw, gb, None, None, None, None


gradsmith_inputs = {
    "BatchNorm": lambda: (
        torch.randn(6, 3, requires_grad=True),
        torch.randn(3, requires_grad=True),
        torch.randn(3, requires_grad=True),
        torch.zeros(3),
        torch.ones(3),
    )
}
