"""`straight_through`: the value of a step in forward, the slope of a smoother function in backward.

    y = fn(x)        dx = g * like'(x)        like is the identity unless given

`like` runs under autograd and only its gradient is used, so whatever holds for `like` (second order, vmap, compile)
holds here. The usual `like(x) + (fn(x) - like(x)).detach()` gives 0.99999994 where fn gives 1; this gives 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.lab.subject.surrogates import surrogate
from gradsmith.ops.asked import floating
from gradsmith.ops.route import applier

Fn = Callable[..., Tensor]


class Through(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    """The second argument, with the gradient of the first."""

    generate_vmap_rule = True

    @staticmethod
    def forward(smooth: Tensor, value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output, None


_through = applier(Through)


def with_slope_of(smooth: Tensor, value: Tensor, op: str) -> Tensor:
    """`value`, with the gradient of `smooth`."""
    if smooth.shape != value.shape:
        what = f"{op}: the value has shape {tuple(value.shape)}, its slope {tuple(smooth.shape)}"
        raise ValueError(f"{what}; fn and like must give the same shape (without like=: the shape of x).")
    result: Tensor = _through(smooth, value.to(smooth.dtype))
    return result


class StraightThrough(nn.Module):
    """A step function with the slope of `like` (default: the identity) in backward.

    >>> binary = StraightThrough(torch.sign, like=torch.tanh)
    >>> x = torch.tensor([0.0, 3.0], requires_grad=True)
    >>> binary(x).sum().backward(); x.grad
    tensor([1.0000, 0.0099])
    """

    def __init__(self, fn: Fn, *, like: Fn | None = None) -> None:
        super().__init__()
        for name, given in (("fn", fn), ("like", like)):
            if not callable(given) and not (name == "like" and given is None):
                raise TypeError(f"straight_through: {name} must be a function of x, not {type(given).__name__}.")
        self.fn, self.like = fn, like
        surrogate("straight-through", like=like)(self)

    def forward(self, x: Tensor) -> Tensor:
        floating(x, "straight_through")
        smooth = x if self.like is None else self.like(x)
        with torch.no_grad():
            value = self.fn(x)
        if not isinstance(value, Tensor) or not isinstance(smooth, Tensor):
            raise TypeError("straight_through: fn and like must return one tensor.")
        return with_slope_of(smooth, value, "straight_through")

    def extra_repr(self) -> str:
        return f"{_name(self.fn)}, like={_name(self.like) if self.like else 'identity'}"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def straight_through(fn: Fn, *, like: Fn | None = None) -> StraightThrough:
    """`fn` with the slope of `like` (default: the identity) in backward; call the result like `fn`.

    >>> rounded = straight_through(torch.round)
    >>> x = torch.tensor([0.4, 1.6], requires_grad=True)
    >>> y = rounded(x); y.sum().backward(); y.tolist(), x.grad.tolist()
    ([0.0, 2.0], [1.0, 1.0])
    """
    return StraightThrough(fn, like=like)


def sign_through(
    x: Tensor, *, like: Fn | None = torch.nn.functional.hardtanh
) -> Tensor:  # gradsmith: surrogate[straight-through]
    """The sign of x; the gradient passes where |x| < 1, as binary networks use it, or with the slope of `like`.

    >>> sign_through(torch.tensor([-0.3, 2.0]))
    tensor([-1.,  1.])
    """
    floating(x, "sign_through")
    return with_slope_of(x if like is None else like(x), x.detach().sign(), "sign_through")


def round_through(x: Tensor, *, like: Fn | None = None) -> Tensor:  # gradsmith: surrogate[straight-through]
    """x rounded to whole numbers; the gradient passes, or has the slope of `like`.

    >>> round_through(torch.tensor([0.4, 1.6]))
    tensor([0., 2.])
    """
    floating(x, "round_through")
    return with_slope_of(x if like is None else like(x), x.detach().round(), "round_through")


def threshold_through(
    x: Tensor, threshold: float = 0.0, *, like: Fn | None = torch.sigmoid
) -> Tensor:  # gradsmith: surrogate[straight-through]
    """1 where x is above the threshold, else 0; the slope is that of `like(x - threshold)`, a sigmoid by default.

    >>> threshold_through(torch.tensor([0.4, 1.6]), 1.0)
    tensor([0., 1.])
    """
    floating(x, "threshold_through")
    over = x - threshold
    return with_slope_of(over if like is None else like(over), (over.detach() > 0).to(x.dtype), "threshold_through")


def clamp_through(
    x: Tensor, min: float, max: float, *, like: Fn | None = None
) -> Tensor:  # gradsmith: surrogate[straight-through]
    """x clamped to [min, max]; the gradient passes outside, too, so that what has left the range can come back.

    >>> clamp_through(torch.tensor([0.4, 1.6]), 0.0, 1.0)
    tensor([0.4000, 1.0000])
    """
    floating(x, "clamp_through")
    if not min <= max:
        raise ValueError(f"clamp_through: min ({min}) is above max ({max}).")
    return with_slope_of(x if like is None else like(x), x.detach().clamp(min, max), "clamp_through")
