"""Built-in: torch.nn.functional.softsign. The same op as a torch.library.custom_op, opaque to torch.compile.

    y  = x / (1 + |x|)
    dx = g / (1 + |x|)^2

Teaches: a custom op is called as one unit by compile, export and the dispatcher; the fake kernel tells them its shape
    and dtype without running it. Its output may not share memory with an input. torch.library.opcheck verifies the
    registration, and says nothing about whether the gradient is right: that still needs gradcheck.
When not to use it: if the body is plain PyTorch, a Function or no Function at all lets compile fuse it.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "an op that compile and export call as one unit: fake kernel, setup_context, register_autograd"
BUILTIN = "torch.nn.functional.softsign"
SECOND_ORDER = True
COMPILES = True


@torch.library.custom_op("gradsmith_gallery::softsign", mutates_args=())
def softsign(x: Tensor) -> Tensor:
    return x / (1 + x.abs())


@softsign.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    (x,) = inputs
    ctx.save_for_backward(x)


def backward(ctx: Any, grad_output: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return grad_output / (1 + x.abs()).square()


softsign.register_autograd(backward, setup_context=setup_context)

gradsmith_inputs = {"softsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
