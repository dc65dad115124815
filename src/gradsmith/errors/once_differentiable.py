"""A second derivative was asked of a Function that promises only the first

Cause
-----
`@once_differentiable` says that backward itself cannot be differentiated: it calls NumPy, a kernel, or writes in
place. A gradient penalty, `gradgradcheck` or `create_graph=True` needs just that.

Remedy
------
Where backward consists of torch operations, take the decorator away and check with `gs.check(..., second_order=True)`.
Otherwise write the backward as a Function of its own, with its own backward.
"""

from __future__ import annotations

WORDINGS = ("trying to differentiate twice a function that was marked with @once_differentiable",)
RULES = ("GS212", "GS221")
BAD = """
import torch
from torch.autograd.function import once_differentiable


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad_output


x = torch.randn(3, requires_grad=True)
(slope,) = torch.autograd.grad(Cube.apply(x).square().sum(), x, create_graph=True)
slope.sum().backward()
"""
GOOD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad_output


x = torch.randn(3, requires_grad=True)
(slope,) = torch.autograd.grad(Cube.apply(x).square().sum(), x, create_graph=True)
slope.sum().backward()
"""
