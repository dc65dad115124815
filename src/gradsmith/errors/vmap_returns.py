"""The vmap method of a Function did not return outputs and their dimensions

Cause
-----
A vmap method returns two things: the outputs, and where the batch dimension is in each of them (None where there is
none).

Remedy
------
Write `return output, 0`, or `return (a, b), (0, None)` for two outputs.
"""

from __future__ import annotations

WORDINGS = (
    "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output",
)
RULES = ("GS604",)
BAD = """
import torch


class Scale(torch.autograd.Function):

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return x * 2


torch.func.vmap(Scale.apply)(torch.randn(3))
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return x * 2, in_dims[0]


torch.func.vmap(Scale.apply)(torch.randn(3))
"""
