"""backward returned a gradient whose shape does not fit its input

Cause
-----
The gradient of an input has the shape of that input. Often a broadcast dimension was not summed, a transpose is
missing, or two gradients are swapped.

Remedy
------
Bring it to the shape of the input: sum over broadcast dimensions (`grad.sum_to_size(w.shape)`), transpose, or return
the gradients in the order of forward's arguments.
"""

from __future__ import annotations

WORDINGS = ("returned an invalid gradient at index ... - got ... but expected shape compatible with ...",)
RULES = ("GS113",)
BAD = """
import torch


class Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.t(), grad_output.t() @ x


Dot.apply(torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)).sum().backward()
"""
GOOD = """
import torch


class Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.t(), x.t() @ grad_output


Dot.apply(torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)).sum().backward()
"""
