"""Built-in: torch.exp. The exponential, with its output saved instead of its input.

    y  = exp(x)
    dx = g * y              (g is grad_output)

Teaches: save the output when the derivative is written in it; backward then computes no second exponential.
When not to use it: torch.exp does the same in one call, and also under vmap and forward mode.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "save the output when the derivative is written in it"
BUILTIN = "torch.exp"
SECOND_ORDER = True
COMPILES = True


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y


gradsmith_inputs = {"Exp": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
