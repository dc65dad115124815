"""Built-in: torch.pow. Square and cube that can be differentiated as often as one likes.

    y = x^2      dx = g * 2x            y = x^3      dx = g * 3x^2

Teaches: under create_graph=True PyTorch records the operations of backward itself. If backward is made of
    differentiable operations on saved inputs and outputs, every further derivative follows by itself: x^3 gives 3x^2,
    6x, 6.
When not to use it: x**2 and x**3 do this.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "a backward made of differentiable operations on saved inputs gives every higher derivative by itself"
BUILTIN = "torch.pow"
SECOND_ORDER = True
COMPILES = True


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


gradsmith_inputs = {
    "Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
    "Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
}
