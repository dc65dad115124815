"""Built-in: Tensor.detach. The identity that lets no gradient through.

    y  = x
    dx = nothing (None)

Teaches: None means "no gradient", and is cheaper than zeros: the branch below gets nothing at all. The output is a
    new tensor object (view_as), since returning the input itself would be read as an in-place operation.
When not to use it: x.detach() says it in the language everybody knows.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "None means no gradient, and is cheaper than zeros"
BUILTIN = "Tensor.detach"
SECOND_ORDER = False
COMPILES = True


class StopGradient(torch.autograd.Function):  # gradsmith: surrogate[stop]
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> None:
        return None


gradsmith_inputs = {"StopGradient": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
