"""Functions defined inside functions, as libraries build them."""

from __future__ import annotations

import functools

import torch


def plain():
    import math

    half = math.pi / 2

    class Wave(torch.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.sin(x + half)

        @staticmethod
        def backward(ctx, grad_output):
            Wave.calls += 1
            (x,) = ctx.saved_tensors
            return grad_output * torch.cos(x + half)

    raise RuntimeError("the rest of the function is never run")


def quantiser(levels):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * levels

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * levels

    return Scale.apply


eight = functools.partial(quantiser(8))


def wrong_for(alpha):
    class Off(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.square() * alpha

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * alpha

    return Off.apply


def of_a_caller(network):
    class Held(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return network.step(x)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    return Held


def counted(n):
    for i in range(n):
        total = i

    class Computed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * total

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * total

    return Computed


def outer():
    def inner():
        class Deep(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return 3 * x

            @staticmethod
            def backward(ctx, grad_output):
                return 2 * grad_output

        return Deep

    return inner()


def from_values(data, mask):
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, data, mask):
            ctx.save_for_backward(mask)
            return data * mask

        @staticmethod
        def backward(ctx, grad_output):
            (mask,) = ctx.saved_tensors
            return grad_output * mask, None

    return Kept.apply(data, mask)


def made_of(inner, slope, *extra):
    class Composed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return inner(x, *extra)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * slope(x)

    return Composed.apply


def _of_local_names(slope):
    return made_of(torch.exp, slope)


sine = made_of(torch.sin, torch.cos)
