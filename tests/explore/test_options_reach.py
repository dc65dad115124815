"""Gradients that are right with the example's options and wrong with others: some move finds each, and none the mended one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gradsmith.lab.explore.defaults import with_defaults
from gradsmith.lab.explore.moves.options import moves
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import Settings, judge
from gradsmith.lab.subject.binding import bound
from gradsmith.lab.subject.target import resolve

MENDED = False  # which of the two the Functions below are


def x(*shape: int, grad: bool = True) -> torch.Tensor:
    drawn = torch.rand(shape or (3, 4), dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    return drawn.requires_grad_(grad)


class Fan(torch.autograd.Function):
    """A default that the call leaves out, looked up in a table."""

    SCALES = {"fan_in": 2.0, "fan_out": 3.0}

    @staticmethod
    def forward(ctx, x, mode="fan_in"):
        ctx.scale = Fan.SCALES[mode] if MENDED else 2.0
        return x * Fan.SCALES[mode]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


class Norm(torch.autograd.Function):
    """A branch of backward for an integer that only forward's `else` takes."""

    @staticmethod
    def forward(ctx, x, p=2):
        ctx.save_for_backward(x)
        ctx.p = p
        return (x**p).sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if ctx.p == 3 and not MENDED:
            return g * 3 * x, None
        return g * ctx.p * x ** (ctx.p - 1), None


class Scan(torch.autograd.Function):
    """The dimension is given to torch in forward, and taken for the last one in backward."""

    @staticmethod
    def forward(ctx, x, dim=-1):
        ctx.dim = dim if MENDED else -1
        return x.cumsum(dim)

    @staticmethod
    def backward(ctx, g):
        return g.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None


class Loss(torch.autograd.Function):
    """A reduction that no comparison names."""

    @staticmethod
    def forward(ctx, x, reduction="mean"):
        ctx.mean, ctx.n, ctx.reduction = reduction == "mean", x.numel(), reduction
        return x.mean() if reduction == "mean" else x.sum() if reduction == "sum" else x * 2

    @staticmethod
    def backward(ctx, g):
        factor = 2 if MENDED and ctx.reduction not in ("mean", "sum") else 1
        return g.expand(3, 4) * factor / (ctx.n if ctx.mean else 1), None


class Threshold(torch.autograd.Function):
    """The other side of a bound on an integer."""

    @staticmethod
    def forward(ctx, x, window=4):
        ctx.window = window
        return x * window if window > 2 else x * 5

    @staticmethod
    def backward(ctx, g):
        return g * (5 if ctx.window <= 2 and MENDED else ctx.window), None


class Gelu(torch.autograd.Function):
    """A word that torch takes."""

    @staticmethod
    def forward(ctx, x, approximate="none"):
        ctx.save_for_backward(x)
        ctx.approximate = approximate if MENDED else "none"
        return F.gelu(x, approximate=approximate)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.gelu_backward(g, x, approximate=ctx.approximate), None


class Frozen(torch.autograd.Function):
    """The gradient of an input that the example does not train."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g * weight, (g * x if MENDED else g)


class Optional_(torch.autograd.Function):
    """Without a bias, another branch."""

    @staticmethod
    def forward(ctx, x, bias=None):
        ctx.bias = bias is not None
        return x + bias if bias is not None else x * 3

    @staticmethod
    def backward(ctx, g):
        return (g if ctx.bias or not MENDED else g * 3), (g if ctx.bias else None)


class Tempered(torch.autograd.Function):
    """A factor that does not show at 1."""

    @staticmethod
    def forward(ctx, x, temperature=1.0):
        ctx.temperature = temperature if MENDED else 1.0
        return x / temperature

    @staticmethod
    def backward(ctx, g):
        return g / ctx.temperature, None


class Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, training):
        ctx.training = training
        return x * 2 if training else x.clone()

    @staticmethod
    def backward(ctx, g):
        return (g * 2 if ctx.training and MENDED else g), None


class Layer(nn.Module):
    """Right after eval(), wrong after train()."""

    def forward(self, x):
        return Dropped.apply(x, self.training)


def keyword_only(x, *, double: bool = False):
    """A keyword that the call leaves out, handed to a Function."""
    return Dropped.apply(x, double)


CASES: list[tuple[Any, tuple[Any, ...], str]] = [
    (Fan, (x(),), "named option"),
    (Norm, (x(),), "named option"),
    (Scan, (x(),), "named option"),
    (Loss, (x(),), "named option"),
    (Threshold, (x(),), "named option"),
    (Gelu, (x(),), "named option"),
    (Frozen, (x(), x(3, 4, grad=False)), "requires grad"),
    (Optional_, (x(), x()), "named option"),
    (Tempered, (x(),), "values"),
    (Layer().eval(), (x(),), "named option"),
    (keyword_only, (x(),), "named option"),
]


def wrong(subject: Any, args: tuple[Any, ...]) -> list[str]:
    """The kinds of the moves after which some gradient is wrong."""
    target, arguments = bound(resolve(subject), args, {})
    lab = Lab(target, arguments, Settings())
    assert all(pair.status != "wrong" for pair in lab.gradient.pairs)
    filled, found = with_defaults(target, arguments), []
    for move in moves(lab, filled):
        changed = move.applied(filled, 0)
        try:
            judged = judge(target, changed, lab.settings)
        except Exception:  # forward, or backward, rejects it
            continue
        if any(pair.status == "wrong" for pair in judged.pairs):
            found.append(move.kind)
    return found


@pytest.mark.parametrize(("subject", "args", "kind"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_some_option_shows_what_the_example_hides(monkeypatch, subject, args, kind):
    assert kind in wrong(subject, args)
    monkeypatch.setitem(globals(), "MENDED", True)
    assert wrong(subject, args) == []
