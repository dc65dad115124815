"""Functions the recording tests call: one right, one wrong by a factor, and what people wrap around them."""

from __future__ import annotations

import torch
from torch.autograd import Function


class Swish(Function):
    """The gradient of beta is twice what it should be."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        return grad_output * (s + x * beta * s * (1 - s)), 2 * (grad_output * x * x * s * (1 - s)).sum()


class Scale(Function):
    @staticmethod
    def forward(x, module, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[2]

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None, None


class Parent(Function):
    @classmethod
    def forward(cls, ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


class Child(Parent):
    @classmethod
    def forward(cls, ctx, x):
        return super().forward(ctx, x, 3.0)

    @staticmethod
    def backward(ctx, grad_output):
        return Parent.backward(ctx, grad_output)[:1]


class Heir(Swish):
    """Everything inherited."""


swish = Swish.apply  # taken at import time, before any tape exists


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.beta = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return Scale.apply(swish(x, self.beta), self, 2.0)
