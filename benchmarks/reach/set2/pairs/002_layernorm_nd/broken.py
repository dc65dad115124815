import torch
from torch.autograd.function import once_differentiable


class LayerNormFunction(torch.autograd.Function):
    """Layer norm over the last dimension of a tensor with any number of leading dimensions."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        mu = x.mean(-1, keepdim=True)
        rstd = (x.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        xhat = (x - mu) * rstd
        ctx.save_for_backward(xhat, rstd, weight)
        return xhat * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        n = xhat.size(1)
        gx = grad_output * weight
        s1 = gx.sum(-1, keepdim=True) / n
        s2 = (gx * xhat).sum(-1, keepdim=True) / n
        dx = rstd * (gx - s1 - xhat * s2)
        flat = grad_output.reshape(-1, grad_output.size(-1))
        return dx, (flat * xhat.reshape(flat.shape)).sum(0), flat.sum(0), None


gradsmith_inputs = {
    "LayerNormFunction": lambda: (
        torch.randn(4, 6, dtype=torch.float64, requires_grad=True),
        torch.rand(6, dtype=torch.float64, requires_grad=True),
        torch.zeros(6, dtype=torch.float64, requires_grad=True),
    )
}
