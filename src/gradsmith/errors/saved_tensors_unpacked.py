"""backward unpacks more or fewer tensors than forward saved

Cause
-----
`ctx.saved_tensors` holds what the last `ctx.save_for_backward` was given, and nothing inside forward itself. A second
call of save_for_backward replaces the first.

Remedy
------
Save everything in one call, and unpack exactly as many: `x, weight = ctx.saved_tensors`; a single one needs a comma:
`(x,) = ctx.saved_tensors`.
"""

from __future__ import annotations

WORDINGS = ("not enough values to unpack (expected ..., got ...)", "too many values to unpack (expected ...)")
SEEN = ("saved_tensors",)
RULES = ("GS103", "GS106", "GS210")
BAD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


Product.apply(torch.randn(3, requires_grad=True), torch.randn(3)).sum().backward()
"""
GOOD = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


Product.apply(torch.randn(3, requires_grad=True), torch.randn(3)).sum().backward()
"""
