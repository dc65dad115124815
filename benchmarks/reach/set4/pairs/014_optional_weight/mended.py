import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight=None, eps=1e-6):
        inv = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, inv)
        y = x * inv
        return y if weight is None else y * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, inv = ctx.saved_tensors
        y = x * inv
        if weight is None:
            return inv * (grad - y * (grad * y).mean(-1, keepdim=True)), None, None
        g = grad * weight
        return inv * (g - y * (g * y).mean(-1, keepdim=True)), (grad * y).sum(tuple(range(grad.ndim - 1))), None


gradsmith_inputs = {"RMSNorm": lambda: (torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True),)}
