import torch
from torch.autograd.function import once_differentiable


class AddRMSNorm(torch.autograd.Function):
    """RMS norm of h = x + residual; with return_sum=True also returns h for the next block."""

    @staticmethod
    def forward(ctx, x, residual, weight, return_sum=False, eps=1e-6):
        h = x + residual
        r = (h.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(h, r, weight)
        y = h * r * weight
        return (y, h) if return_sum else y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_y, *grad_rest):
        h, r, weight = ctx.saved_tensors
        gw = grad_y * weight
        dh = r * gw - h * r**3 * (gw * h).mean(-1, keepdim=True)
        dw = (grad_y * h * r).reshape(-1, h.size(-1)).sum(0)
        return dh, dh, dw, None, None


gradsmith_inputs = {
    "AddRMSNorm": lambda: (
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
        torch.rand(5, dtype=torch.float64, requires_grad=True),
    )
}
