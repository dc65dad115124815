"""Softmax whose backward builds the Jacobian, against the one torch has."""

import torch

CAUSES = ("superlinear-backward",)


class SlowSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, dim=-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        jacobian = torch.diag_embed(y) - y.unsqueeze(-1) * y.unsqueeze(-2)  # <-
        return torch.matmul(jacobian, grad_output.unsqueeze(-1)).squeeze(-1)


def fast(x):
    return torch.softmax(x, dim=-1)


slow = SlowSoftmax


def inputs():
    return (torch.randn(32, 200, requires_grad=True),)
