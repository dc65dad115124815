"""`grad_clip`: y = x, dx = clamp(g, -value, value) or g * min(1, norm / |g|).

By value bends the direction of the gradient, by norm keeps it. Neither is linear in g. The quotient is written
norm / max(|g|, norm), so that it is finite, and so is its derivative, at g = 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.lab.subject.surrogates import surrogate
from gradsmith.ops.asked import floating, number
from gradsmith.ops.route import applier, wide

Dims = int | tuple[int, ...] | None


class Clip(torch.autograd.Function):  # gradsmith: surrogate[clip]
    """The identity whose gradient is clipped."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, value: float | None, norm: float | None, dim: Dims) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, ctx.value, ctx.norm, ctx.dim = inputs

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.value is not None:
            return grad_output.clamp(-ctx.value, ctx.value), None, None, None
        (wide_grad,) = wide(grad_output)  # the length of a float16 gradient need not fit into float16
        length = torch.linalg.vector_norm(wide_grad, dim=ctx.dim, keepdim=True)
        return (wide_grad * (ctx.norm / length.clamp(min=ctx.norm))).to(grad_output.dtype), None, None, None


_clip = applier(Clip)


def grad_clip(x: Tensor, *, value: float | None = None, norm: float | None = None, dim: Dims = None) -> Tensor:  # gradsmith: surrogate[clip]  # fmt: skip
    """x itself; its gradient is clipped to [-value, value], or shortened to the length `norm`.

    `dim` gives the dimensions over which the length is taken: `dim=1` for each row on its own. Default: all.

    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * grad_clip(x, value=1.0)).sum().backward(); x.grad
    tensor([1., 1.])
    """
    floating(x, "grad_clip")
    _check(value, norm, dim, "grad_clip")
    result: Tensor = _clip(x, value, norm, dim)
    return result


def _check(value: float | None, norm: float | None, dim: Dims, op: str) -> None:
    if (value is None) == (norm is None):
        raise ValueError(f"{op}: give either value= or norm=, not {'both' if norm is not None else 'neither'}.")
    if dim is not None and norm is None:
        raise ValueError(f"{op}: dim= goes with norm=; clipping by value looks at each element on its own.")
    limit, name = (value, "value") if norm is None else (norm, "norm")
    number(limit, op, name, least=0)
    if limit == 0:
        raise ValueError(f"{op}: {name} is 0; use stop_gradient to let no gradient through.")


class GradClip(nn.Module):
    """`grad_clip` as a module.

    >>> GradClip(norm=1.0)
    GradClip(norm=1.0)
    """

    def __init__(self, *, value: float | None = None, norm: float | None = None, dim: Dims = None) -> None:
        super().__init__()
        _check(value, norm, dim, "GradClip")
        self.value, self.norm, self.dim = value, norm, dim
        surrogate("clip")(self)

    def forward(self, x: Tensor) -> Tensor:
        return grad_clip(x, value=self.value, norm=self.norm, dim=self.dim)

    def extra_repr(self) -> str:
        given = {"value": self.value, "norm": self.norm, "dim": self.dim}
        return ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)
