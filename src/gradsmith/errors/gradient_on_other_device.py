"""backward returned a gradient that is not on the device of its input

Cause
-----
A tensor was created or moved in backward without regard to the device of the input.

Remedy
------
Create it with `torch.zeros_like(x)` or `device=x.device`; do not call `.cpu()` in backward without moving the result
back.
"""

from __future__ import annotations

WORDINGS = ("returned an invalid gradient at index ... - expected device ... but got ...",)
RULES = ()
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output * 2).to("meta")


Scale.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


Scale.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""
