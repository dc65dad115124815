import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class BatchNorm2dFunction(Function):
    """y = gamma * (x - mu) / sqrt(var + eps) + beta, from the batch or from running statistics."""

    @staticmethod
    def forward(ctx, x, gamma, beta, running_mean, running_var, training, eps):
        if x.dim() != 4 or x.numel() == 0 or any(t.is_complex() for t in (x, gamma, beta)):
            raise TypeError("x must be a real, non-empty NCHW tensor")
        if ctx.needs_input_grad[3] or ctx.needs_input_grad[4]:
            raise ValueError("running statistics are buffers")
        if any(t.shape != x.shape[1:2] for t in (gamma, beta, running_mean, running_var)):
            raise ValueError("one parameter per channel")
        axes = (0, 2, 3)
        if training:
            mean = x.mean(axes)
            var = x.var(axes, unbiased=False)
        else:
            mean, var = running_mean, running_var
        inv = torch.rsqrt(var + eps)
        xhat = (x - mean[:, None, None]) * inv[:, None, None]
        ctx.save_for_backward(xhat, gamma, inv)
        ctx.training = training
        return gamma[:, None, None] * xhat + beta[:, None, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_y):
        xhat, gamma, inv = ctx.saved_tensors
        axes = (0, 2, 3)
        grad_gamma = (grad_y * xhat).sum(axes)
        grad_beta = grad_y.sum(axes)
        centred = grad_y
        if ctx.training:
            m = grad_y.numel() // grad_y.size(1)
            centred = grad_y - (grad_beta[:, None, None] + xhat * grad_gamma[:, None, None]) / m
        grad_x = centred * (gamma * inv)[:, None, None]
        return grad_x, grad_gamma, grad_beta, None, None, None, None


def _inputs():
    c = 3
    return (
        torch.randn(2, c, 4, 4, requires_grad=True),
        torch.rand(c).add(0.5).requires_grad_(),
        torch.randn(c, requires_grad=True),
        torch.zeros(c),
        torch.ones(c),
        True,
        1e-5,
    )


gradsmith_inputs = {"BatchNorm2dFunction": _inputs}
