"""Sine and cosine together, with nothing computed for an output nobody used.

    s, c = sin(x), cos(x)
    dx   = gs * c - gc * s

Teaches: by default PyTorch fills the gradient of an unused output with zeros, and backward multiplies by them.
    set_materialize_grads(False) hands over None instead; then every gradient has to be tested before it is used. Both
    outputs serve as each other's derivative, so nothing but the outputs is saved.
When not to use it: where the work per output is small, leave the zeros on: the code has one branch less to get wrong.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "set_materialize_grads(False): an unused output arrives as None and costs nothing"
SECOND_ORDER = True
COMPILES = True


class SinCos(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        s, c = torch.sin(x), torch.cos(x)
        ctx.save_for_backward(s, c)
        ctx.set_materialize_grads(False)
        return s, c

    @staticmethod
    def backward(ctx: Any, grad_s: Tensor | None, grad_c: Tensor | None) -> Tensor | None:
        s, c = ctx.saved_tensors
        if grad_s is None and grad_c is None:
            return None
        if grad_s is None:
            return -grad_c * s
        if grad_c is None:
            return grad_s * c
        return grad_s * c - grad_c * s


gradsmith_inputs = {"SinCos": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
