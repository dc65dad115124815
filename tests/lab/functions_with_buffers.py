"""Functions that hand out a tensor which they write into again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Accumulates(torch.autograd.Function):
    """Recomputes, and returns the `.grad` that every backward adds to."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.inner = x.detach().requires_grad_()
        with torch.enable_grad():
            ctx.result = ctx.inner.sin()
        return ctx.result.detach()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        ctx.result.backward(grad_output, retain_graph=True)
        return ctx.inner.grad


class ReusesOneOfItsClass(torch.autograd.Function):
    buffers: dict[Any, Tensor] = {}

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        buffer = ReusesOneOfItsClass.buffers.setdefault((x.shape, x.dtype), torch.empty_like(x))
        return torch.mul(grad_output, x.cos(), out=buffer)


class ReusesOneOfItsGraph(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.buffer = torch.empty_like(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return torch.mul(grad_output, x.cos(), out=ctx.buffer)


class PassesOn(torch.autograd.Function):
    """Right: what it returns is the grad_output it was given, or a view of it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output, grad_output.view_as(grad_output)


class WritesItsResultIntoOneOfItsClass(torch.autograd.Function):
    """The output itself is the buffer: whoever keeps the last output keeps its graph, and no other."""

    buffers: dict[Any, Tensor] = {}

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        buffer = WritesItsResultIntoOneOfItsClass.buffers.setdefault((x.shape, x.dtype), torch.empty_like(x))
        return torch.sin(x, out=buffer)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()
