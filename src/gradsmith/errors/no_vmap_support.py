"""vmap met a Function that does not say how it is batched

Cause
-----
The Function has setup_context, but neither a vmap method nor a rule that PyTorch generates.

Remedy
------
Where forward and backward consist of torch operations, write `generate_vmap_rule = True` in the class. Where they call
NumPy or a kernel of your own, write the static method `vmap(info, in_dims, *args)`.
"""

from __future__ import annotations

WORDINGS = (
    "You tried to vmap over ..., but it does not have vmap support. Please override and implement the vmap staticmethod or set generate_vmap_rule=True",
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


torch.func.vmap(Scale.apply)(torch.randn(3))
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


torch.func.vmap(Scale.apply)(torch.randn(3))
"""
