"""Dropout that keeps one bit per element for backward. For memory: torch's keeps a mask of x's own dtype, 16 or 32 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradsmith.ops.asked import floating
from gradsmith.ops.bits import pack, select
from gradsmith.ops.route import transformed


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        kept = torch.empty(x.shape, dtype=torch.bool, device=x.device).bernoulli_(1 - p)
        bits = pack(kept)
        ctx.save_for_backward(bits)
        ctx.scale = 1 / (1 - p)
        return select(x, bits, ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (bits,) = ctx.saved_tensors
        return select(grad, bits, ctx.scale), None


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero with probability p, else x / (1 - p); one bit per element is kept for backward.

    >>> dropout(torch.ones(3), p=0.0)
    tensor([1., 1., 1.])
    """
    floating(x, "dropout")
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p must be between 0 and 1; it is {p}.")
    if not training or p == 0:
        return x
    if p == 1 or transformed() or x.is_complex():
        return F.dropout(x, p, training)
    result: Tensor = _Dropout.apply(x, p)
    return result


class Dropout(nn.Module):
    """`dropout` as a module.

    >>> Dropout(0.1).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p must be between 0 and 1; it is {p}.")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
