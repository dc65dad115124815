"""The Function has a vmap method and asks PyTorch to generate one

Cause
-----
`generate_vmap_rule = True` and a vmap method of its own contradict each other.

Remedy
------
Keep one of them: the generated rule where forward and backward are torch operations, your own method otherwise.
"""

from __future__ import annotations

WORDINGS = (
    "You tried to vmap over ..., but it has both generate_vmap_rule=True and an overridden vmap staticmethod",
    "You tried to vmap over ..., but it has both generate_vmap_rule=True and an overriden vmap staticmethod",  # torch 2.6
)
RULES = ("GS112",)
BAD = """
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

    @staticmethod
    def vmap(info, in_dims, x):
        return x * 2, in_dims[0]


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
