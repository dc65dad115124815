"""Built-in: torch.nn.functional.softsign. The same Function with its vmap rule generated.

    y  = x / (1 + |x|)
    dx = g / (1 + |x|)^2

Teaches: generate_vmap_rule = True lets vmap run forward and backward themselves under vmap. It needs setup_context
    and nothing but PyTorch operations inside: no NumPy, no kernel of your own, no .item(). Defining vmap as well is
    an error.
When not to use it: around foreign kernels; there write vmap by hand (setup_context_vmap.py).
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "generate_vmap_rule = True where forward and backward are plain PyTorch"
BUILTIN = "torch.nn.functional.softsign"
SECOND_ORDER = True
COMPILES = True


class Softsign(torch.autograd.Function):
    generate_vmap_rule = True

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


gradsmith_inputs = {"Softsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
