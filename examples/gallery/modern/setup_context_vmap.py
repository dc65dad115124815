"""Built-in: torch.nn.functional.softsign. A Function for torch.func, with its vmap rule written by hand.

    y  = x / (1 + |x|)
    dx = g / (1 + |x|)^2

Teaches: forward without ctx, and setup_context apart from it, is what torch.func.grad and vmap ask for. The vmap rule
    gets the whole batch and the place of the batch dimension, and returns the output and where the dimension is now.
    Element-wise, the dimension stays where it was; otherwise movedim it to the front first.
When not to use it: generate_vmap_rule (generated_vmap.py) writes the rule when backward is plain PyTorch;
    setup_context costs some 10 microseconds per call more than forward(ctx, ...).
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "setup_context for torch.func, and a vmap rule that says where the batch dimension went"
BUILTIN = "torch.nn.functional.softsign"
SECOND_ORDER = True
COMPILES = True


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x / (1 + x.abs())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()).square()

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None], x: Tensor) -> tuple[Tensor, int | None]:
        return Softsign.apply(x), in_dims[0]


gradsmith_inputs = {"Softsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
