import torch
import torch.nn.functional as F


class CausalConv(torch.autograd.Function):
    """Depthwise causal convolution of (N, C, L) with (C, K)."""

    @staticmethod
    def forward(ctx, x, weight, dilation=1):
        k = weight.shape[1]
        pad = (k - 1) * dilation
        padded = F.pad(x, (pad, 0))
        ctx.save_for_backward(padded, weight)
        ctx.dilation, ctx.length = dilation, x.shape[-1]
        out = torch.zeros_like(x)
        for i in range(k):
            out = out + weight[:, i, None] * padded[..., i * dilation : i * dilation + x.shape[-1]]
        return out

    @staticmethod
    def backward(ctx, grad):
        padded, weight = ctx.saved_tensors
        n, d = ctx.length, ctx.dilation
        gx, gw = torch.zeros_like(padded), torch.zeros_like(weight)
        for i in range(weight.shape[1]):
            gw[:, i] = (grad * padded[..., i * d : i * d + n]).sum((0, 2))
            start = i * d
            gx[..., start : start + n] += weight[:, i, None] * grad
        return gx[..., gx.shape[-1] - n :], gw, None


gradsmith_inputs = {"CausalConv": lambda: (torch.randn(2, 3, 7, requires_grad=True), torch.randn(3, 3, requires_grad=True),)}
