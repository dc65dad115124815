"""Built-in: torch.nn.functional.softsign. The same Function with forward mode.

    y  = x / (1 + |x|)
    dx = g / (1 + |x|)^2            (reverse: from the output's gradient to the input's)
    dy = t / (1 + |x|)^2            (forward: from the input's tangent t to the output's)

Teaches: jvp reads what save_for_forward kept, and returns one tangent per output. It is its own formula: a mistake in
    it is invisible to plain gradcheck, so check with gradcheck(..., check_forward_ad=True).
When not to use it: if nobody runs torch.func.jvp, jacfwd or hessian over this op, backward alone will do, and
    torch.compile (2.13) accepts a full graph only without jvp.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "jvp with save_for_forward: forward mode is a second formula, with a check of its own"
BUILTIN = "torch.nn.functional.softsign"
SECOND_ORDER = True
COMPILES = False
FORWARD_MODE = True


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x / (1 + x.abs())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()).square()

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return tangent / (1 + x.abs()).square()


gradsmith_inputs = {"Softsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
