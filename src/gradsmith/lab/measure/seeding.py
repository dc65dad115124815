"""Gradients for given grad_outputs, through a scalar.

`torch.autograd.grad` with tensors as grad_outputs imports torch's symbolic shapes, and with them sympy, at its first call:
0.7 s before the first verdict. For a scalar without grad_outputs it does not, so the given ones are put in behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.process import torch_says


class _Seeded(torch.autograd.Function):
    """A zero that depends on all outputs; whatever arrives, each output gets its own grad_output."""

    @staticmethod
    def forward(ctx: Any, grad_outputs: Sequence[Tensor], *outputs: Tensor) -> Tensor:
        ctx.grad_outputs = grad_outputs
        return torch.zeros((), dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        return (None, *ctx.grad_outputs)


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grad_outputs: Sequence[Tensor], *, retain_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """As `torch.autograd.grad(outputs, inputs, grad_outputs, allow_unused=True)`; every output must need a gradient.

    >>> x = torch.tensor([1.0, 3.0], requires_grad=True)
    >>> gradients([x * x], [x], [torch.tensor([1.0, 10.0])])
    (tensor([ 2., 60.]),)
    """
    if not outputs:
        return (None,) * len(inputs)
    scalar = _Seeded.apply(tuple(grad_outputs), *outputs)
    try:
        return torch.autograd.grad(scalar, inputs, retain_graph=retain_graph, allow_unused=True)
    except RuntimeError as error:
        if not torch_says.only_under_backward(error):
            raise
    # A checkpoint that asks `torch.autograd._is_checkpoint_valid()` runs under .backward() only, and says so.
    return _accumulated(_Seeded.apply(tuple(grad_outputs), *outputs), inputs, retain_graph)


def _accumulated(scalar: Tensor, inputs: Sequence[Tensor], retain_graph: bool) -> tuple[Tensor | None, ...]:
    before = [x.grad for x in inputs]
    for x in inputs:
        x.grad = None
    try:
        scalar.backward(retain_graph=retain_graph)
        return tuple(x.grad for x in inputs)
    finally:
        for x, grad in zip(inputs, before):
            x.grad = grad
