"""Two inputs, two outputs: the sum of squares and the product.

    s  = x^2 + y^2                  p  = x y
    dx = gs * 2x + gp * y           dy = gs * 2y + gp * x

Teaches: backward gets one gradient per output and returns one per input; each input collects a term from every output
    it went into (the columns of the Jacobian, transposed).
When not to use it: plain `x * x + y * y, x * y` under autograd; this is the pattern, not the purpose.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "one gradient in per output, one out per input, and a term for every path between them"
SECOND_ORDER = True
COMPILES = True


class SquaresAndProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, y)
        return x * x + y * y, x * y

    @staticmethod
    def backward(ctx: Any, grad_squares: Tensor, grad_product: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        grad_x = grad_squares * 2 * x + grad_product * y
        grad_y = grad_squares * 2 * y + grad_product * x
        return grad_x, grad_y


gradsmith_inputs = {
    "SquaresAndProduct": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
}
