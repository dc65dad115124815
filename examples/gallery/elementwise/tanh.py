"""Built-in: torch.tanh. The hyperbolic tangent, from its input and from its output.

    y  = tanh(x)
    dx = g * (1 - y * y)

Teaches: a saved output is part of the graph, so the second derivative comes out right without further work; a saved
    intermediate would be a constant to autograd, and the second derivative silently wrong.
When not to use it: torch.tanh is the output form, fused.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "inputs and outputs may be saved without harm to second order; intermediates may not"
BUILTIN = "torch.tanh"
SECOND_ORDER = True
COMPILES = True


class TanhFromOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y * y)


class TanhFromInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        y = torch.tanh(x)
        return grad_output * (1 - y * y)


gradsmith_inputs = {
    "TanhFromOutput": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
    "TanhFromInput": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
}
