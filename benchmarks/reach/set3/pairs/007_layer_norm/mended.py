import torch
from torch.autograd.function import once_differentiable


class LayerNorm(torch.autograd.Function):
    """Layer norm of real x over its last weight.dim() dims, with weight and bias of that shape."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        k = weight.dim()
        if k < 1 or x.shape[-k:] != weight.shape or bias.shape != weight.shape or (x + weight + bias).is_complex():
            raise ValueError("weight and bias must have the trailing shape of x")
        dims = tuple(range(-k, 0))
        mean = x.mean(dims, keepdim=True)
        rstd = (x - mean).square().mean(dims, keepdim=True).add(eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, rstd)
        return (x - mean) * rstd * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, mean, rstd = ctx.saved_tensors
        dims = tuple(range(-weight.dim(), 0))
        xhat = (x - mean) * rstd
        gx = grad * weight
        gx = rstd * (gx - gx.mean(dims, keepdim=True) - xhat * (gx * xhat).mean(dims, keepdim=True))
        return gx, (grad * xhat).sum_to_size(weight.shape), grad.sum_to_size(weight.shape), None


gradsmith_inputs = {
    "LayerNorm": lambda: (
        torch.randn(4, 6, requires_grad=True),
        torch.randn(6, requires_grad=True),
        torch.randn(6, requires_grad=True),
    )
}
