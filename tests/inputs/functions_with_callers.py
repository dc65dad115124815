"""Functions whose inputs are made by the code around them."""

from __future__ import annotations

import torch
from torch import nn
from torch.autograd import Function

CALLED: list[str] = []


class Plan:
    def __init__(self, order):
        self.order, self.undo = order, order.argsort()


class Reorder(Function):
    """Nobody guesses a Plan."""

    @staticmethod
    def forward(ctx, x, plan):
        ctx.undo = plan.undo
        return x[plan.order]

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.undo], None


def reorder(x):
    return Reorder.apply(x, Plan(torch.arange(len(x)).roll(1)))


class ReorderWrong(Reorder):
    @staticmethod
    def backward(ctx, grad):
        return -grad[ctx.undo], None


def reorder_wrong(x):
    return ReorderWrong.apply(x, Plan(torch.arange(len(x)).roll(1)))


class Blend(Function):
    """Called by a layer, with what the layer keeps."""

    @staticmethod
    def forward(ctx, x, settings):
        if settings["kind"] != "blend":
            raise ValueError("which kind?")
        ctx.rate = settings["rate"]
        return x * ctx.rate

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.rate, None


class BlendLayer(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.settings = {"kind": "blend", "rate": 1.0 / size}

    def forward(self, x):
        return Blend.apply(x, self.settings)


class Between(Function):
    """Its parameters have no telling names; the caller's defaults say what they are."""

    @staticmethod
    def forward(ctx, x, p0, p1):
        if not isinstance(p0, float) or p1 != "tanh":
            raise TypeError("a float and a word")
        out = torch.tanh(x * p0)
        ctx.save_for_backward(out)
        ctx.p0 = p0
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * (1 - out**2) * ctx.p0, None, None


between_apply = Between.apply


def between(x, gain=1.25, *, kind="tanh"):
    return between_apply(x, gain, kind)


class Watched(Function):
    @staticmethod
    def forward(ctx, x, secret):
        return x * secret.number

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def main(x):
    CALLED.append("main")
    return Watched.apply(x, None)


def log_and_run(x):
    CALLED.append("log_and_run")
    print("this leaves traces")
    return Watched.apply(x, None)


class Twist(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3).double()

    def turned(self, x):
        return torch.tanh(self.inner(x)) * self.inner.bias.norm()


class Twisted(Function):
    """Runs a layer whose parameters are passed beside it, so that they get their gradients."""

    @staticmethod
    def forward(ctx, x, layer, *parameters):
        ctx.layer = layer
        ctx.save_for_backward(x, *parameters)
        return layer.turned(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, *parameters = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.layer.turned(x)
        first, *others = torch.autograd.grad(y, (x, *(p for p in parameters if p.requires_grad)), grad)
        return first, None, *(others.pop(0) if p.requires_grad else None for p in parameters)


def twist(x):
    layer = Twist()
    return Twisted.apply(x, layer, *layer.parameters())
