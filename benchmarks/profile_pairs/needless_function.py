"""LayerNorm with a backward of many passes, against F.layer_norm, which autograd differentiates in one kernel."""

import torch
import torch.nn.functional as F

CAUSES = ("slower-than-autograd",)


class SlowLayerNorm(torch.autograd.Function):  # <-
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return F.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        inverse = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
        xhat = centred * inverse
        gw = grad_output * weight
        grad_x = inverse * (gw - gw.mean(-1, keepdim=True) - xhat * (gw * xhat).mean(-1, keepdim=True))
        return grad_x, (grad_output * xhat).sum(0), grad_output.sum(0)


def fast(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias)


slow = SlowLayerNorm


def inputs():
    return (
        torch.randn(256, 256, requires_grad=True),
        torch.rand(256, requires_grad=True),
        torch.randn(256, requires_grad=True),
    )
