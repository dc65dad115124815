"""Functions that take or return tensor subclasses: one described by its attributes, one as the compiler wants it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import Function


class Held(Tensor):
    """Numbers and a mask that says which of them count."""

    @staticmethod
    def __new__(cls, data, mask):
        if mask.dtype != torch.bool or mask.shape != data.shape:
            raise TypeError("one flag for each number")
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

    def __init__(self, data, mask):
        self._data, self._mask = data.clone(), mask.clone()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return Held(func(args[0]._data), args[0]._mask)
        if func is torch.ops.aten.mul.Tensor:
            return Held(args[0]._data * args[1], args[0]._mask)
        raise NotImplementedError(str(func))


class Packed(Tensor):
    """Numbers and where one sequence after the other begins in them."""

    @staticmethod
    def __new__(cls, values, offsets):
        if offsets[0] != 0 or offsets[-1] != len(values):
            raise ValueError("offsets run from 0 to the end")
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=values.dtype)

    def __init__(self, values, offsets):
        self.values_, self.offsets_ = values, offsets

    def __tensor_flatten__(self):
        return ["values_", "offsets_"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Packed(inner["values_"], inner["offsets_"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return Packed(func(args[0].values_), args[0].offsets_)
        raise NotImplementedError(str(func))


class Hold(Function):
    """Plain numbers in, the subclass out: backward is given one, too."""

    @staticmethod
    def forward(ctx, x, mask):
        return Held(x * 3, mask)

    @staticmethod
    def backward(ctx, grad):
        assert isinstance(grad, Held)
        return 3 * grad._data * grad._mask, None


class Release(Function):
    """The subclass in, plain numbers out."""

    factor = 1

    @classmethod
    def forward(cls, ctx, held):
        if not isinstance(held, Held):
            raise TypeError("wants a Held")
        ctx.mask = held._mask
        ctx.factor = cls.factor
        return torch.where(held._mask, held._data, 0.0)

    @staticmethod
    def backward(ctx, grad):
        return Held(grad * ctx.factor, ctx.mask)


class ReleaseTwice(Release):
    factor = 2


class Totals(Function):
    @staticmethod
    def forward(ctx, packed: Packed):
        ctx.offsets = packed.offsets_
        pieces = torch.tensor_split(packed.values_, ctx.offsets[1:-1])
        return torch.stack([piece.square().sum(0) for piece in pieces]) * _twice(ctx, packed)

    @staticmethod
    def backward(ctx, grad):
        lengths = ctx.offsets.diff()
        return Packed(4 * ctx.values * grad.repeat_interleave(lengths, 0), ctx.offsets)


def _twice(ctx, packed):
    ctx.values = packed.values_
    return 2.0


class Named(Tensor):
    """A subclass with numbers of its own, which merely has an attribute."""


class Rename(Function):
    @staticmethod
    def forward(ctx, x):
        out = (2 * x).as_subclass(Named)
        out.scale = torch.ones(1)
        return out

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


class Rounded(Tensor):
    """Integers and the scale that makes numbers of them."""

    @staticmethod
    def __new__(cls, codes, scale):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype)

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return Rounded(args[0].codes, args[0].scale)
        plain = [a.codes * a.scale if isinstance(a, Rounded) else a for a in args]
        return func(*plain, **(kwargs or {}))


class Round(Function):
    """Straight through, as everybody does it."""

    @staticmethod
    def forward(ctx, x):
        scale = x.detach().abs().max() / 100
        return Rounded((x / scale).round().to(torch.int32), scale)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Unround(Function):
    @staticmethod
    def forward(ctx, rounded: Rounded):
        return rounded.codes * rounded.scale

    @staticmethod
    def backward(ctx, grad):
        return grad


class Pair(Tensor):
    """The sum of two tensors, kept apart."""

    @staticmethod
    def __new__(cls, high: Tensor, low: Tensor):
        return torch.Tensor._make_wrapper_subclass(cls, high.shape, dtype=high.dtype)

    def __init__(self, high, low):
        self.high, self.low = high, low

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return Pair(args[0].high, args[0].low)
        raise NotImplementedError(str(func))


class OfSmallRest(Function):
    """Right to first order, if `low` is small, as its author takes for granted."""

    @staticmethod
    def forward(ctx, pair: Pair):
        ctx.high = pair.high
        return (pair.high + pair.low) ** 2

    @staticmethod
    def backward(ctx, grad):
        return Pair(2 * grad * ctx.high, 2 * grad * ctx.high)
