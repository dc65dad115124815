"""Built-in: torch.sigmoid. The logistic function, from its input and from its output.

    y  = 1 / (1 + exp(-x))
    dx = g * y * (1 - y)

Teaches: from the output, backward needs two multiplications; from the input, it evaluates the sigmoid a second time.
    From the input the tail is exact: for x = 40 the output is 1 in float32, so 1 - y is 0, but sigmoid(-x) is 4e-18.
When not to use it: torch.sigmoid is the output form, fused; for log(sigmoid(x)) use torch.nn.functional.logsigmoid.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "saving the output is cheaper; saving the input keeps the tail exact, because 1 - y rounds to 0"
BUILTIN = "torch.sigmoid"
SECOND_ORDER = True
COMPILES = True


class SigmoidFromOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)


class SigmoidFromInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * torch.sigmoid(x) * torch.sigmoid(-x)


gradsmith_inputs = {
    "SigmoidFromOutput": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
    "SigmoidFromInput": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
}
