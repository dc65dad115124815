"""contiguous() before matrix products and sums that read any strides."""

import torch

CAUSES = ("needless-copy",)


class SlowLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t().contiguous()  # <-

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        gt = grad_output.t().contiguous()  # <-
        return grad_output @ w, gt @ x


class FastLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w, grad_output.t() @ x


slow, fast = SlowLinear, FastLinear


def inputs():
    return torch.randn(16, 1024, requires_grad=True), torch.randn(1024, 1024, requires_grad=True)
