"""Built-in: torch.square. The square, by nested loops as people first write it, and vectorised.

    y  = x * x
    dx = g * 2 * x

Teaches: both are right, and one is unusable: the loops start 2 * rows * columns kernels, the vectorised one starts
    two.
When not to use it: SquareLoops never, except to check the vectorised version against; Square where torch.square will
    do.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "a correct gradient can still be unusable: element loops against one vectorised line"
BUILTIN = "torch.square"
SECOND_ORDER = True
COMPILES = True


class SquareLoops(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] * x[i, j]
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                grad_x[i, j] = grad_output[i, j] * 2 * x[i, j]
        return grad_x


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {
    "SquareLoops": lambda: (torch.randn(3, 2, dtype=torch.float64, requires_grad=True),),
    "Square": lambda: (torch.randn(5, 3, dtype=torch.float64, requires_grad=True),),
}
