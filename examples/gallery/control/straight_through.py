"""Sign and round with the gradient of something smoother: straight-through estimators.

    y = sign(x)         true slope 0; pretend it was clamp(x, -1, 1):   dx = g where |x| <= 1, else 0
    y = round(x)        true slope 0; pretend it was the identity:      dx = g

Teaches: the true derivative is zero almost everywhere and trains nothing, so another function's is used, on purpose.
    The declaration on the class line tells readers and checkers that the mismatch is meant.
When not to use it: x + (round(x) - x).detach() is the same estimator without a Function; and not at evaluation time,
    where nothing is differentiated.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "use the slope of a smoother function on purpose, and declare it"
SECOND_ORDER = False
COMPILES = True


class Sign(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() <= 1, grad_output, 0)


class Round(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output


gradsmith_inputs = {
    "Sign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),),
    "Round": lambda: (torch.randn(4, 3, dtype=torch.float64).mul(5).requires_grad_(),),
}
