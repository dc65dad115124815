"""Sources that the tests open."""

from __future__ import annotations

SWISH = """\
import torch
from torch.autograd import Function


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s, beta)
        return x * s

    @staticmethod
    def backward(ctx, grad_output):
        x, s, beta = ctx.saved_tensors
        grad_output.mul_(s)
        return grad_output, (grad_output * x).sum()


gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, requires_grad=True), torch.tensor(1.5, requires_grad=True))}
"""

ROUND = """\
import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


gradsmith_inputs = {"Round": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""

QUADRATIC = """\
import torch


class QuadraticForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, matrix):
        ctx.save_for_backward(x, matrix)
        return ((x @ matrix) * x).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, matrix = ctx.saved_tensors
        return 2 * grad_output[:, None] * (x @ matrix), x.mT @ (grad_output[:, None] * x)


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    half = torch.randn(3, 3, dtype=torch.float64)
    return x, (half + half.mT).requires_grad_()


gradsmith_inputs = {"QuadraticForm": example}
"""

CUBE = """\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x**2 * grad_output


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""

ENDLESS = """\
import os
import time
import torch

with open("started", "w") as stream:
    stream.write(str(os.getpid()))
while True:
    time.sleep(60)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
"""
