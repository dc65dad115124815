"""Built-in: torch.mul. A product under general broadcasting, each gradient summed back to its argument's shape.

    y  = a * b                    (a and b of any shapes that broadcast)
    da = sum of g * b over the dimensions a was copied along; the same for b

Teaches: there are two ways to be copied: a dimension of size 1 was stretched, or leading dimensions were missing.
    `sum_to_shape` undoes both; it is Tensor.sum_to_size, spelled out.
When not to use it: call Tensor.sum_to_size; and plain `a * b` needs no Function.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "undo broadcasting in general: sum the missing leading dimensions and the stretched ones"
BUILTIN = "torch.mul"
SECOND_ORDER = True
COMPILES = True


def sum_to_shape(gradient: Tensor, shape: torch.Size) -> Tensor:
    """The gradient summed over every dimension along which a tensor of this shape was broadcast."""
    missing = gradient.dim() - len(shape)
    stretched = [missing + d for d, size in enumerate(shape) if size == 1 and gradient.shape[missing + d] != 1]
    dims = [*range(missing), *stretched]
    return gradient.sum(dims, keepdim=True).reshape(shape) if dims else gradient


class BroadcastProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_a = sum_to_shape(grad_output * b, a.shape)
        if ctx.needs_input_grad[1]:
            grad_b = sum_to_shape(grad_output * a, b.shape)
        return grad_a, grad_b


def pair(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    return (
        torch.randn(a, dtype=torch.float64, requires_grad=True),
        torch.randn(b, dtype=torch.float64, requires_grad=True),
    )


gradsmith_inputs = {
    "BroadcastProduct": [
        lambda: pair((2, 1, 3), (4, 1)),
        lambda: pair((5,), (2, 3, 1)),
        lambda: pair((), (3, 2)),
        lambda: pair((4, 3), (4, 3)),
    ]
}
