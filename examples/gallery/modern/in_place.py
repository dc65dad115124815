"""Built-in: Tensor.exp_. An exponential that overwrites its input, and tells PyTorch.

    x <- exp(x)
    dx = g * y                  (y is the new content)

Teaches: mark_dirty is the contract of an in-place Function: the version counter moves, so a consumer that saved the
    old content raises instead of computing nonsense. The dirty tensor must be returned, and it is the output that is
    saved. Without mark_dirty the caller's tensor changes and its history does not.
When not to use it: on a leaf that requires grad, which PyTorch refuses; and wherever the old value is still needed.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "mark_dirty, return the tensor you changed, and save that"
BUILTIN = "Tensor.exp_"
SECOND_ORDER = True
COMPILES = True
IN_PLACE = True


class ExpInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y


gradsmith_inputs = {"ExpInPlace": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
