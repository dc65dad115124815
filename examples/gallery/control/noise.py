"""The identity that adds noise to the gradient.

    y  = x
    dx = g + sigma * n,     n ~ N(0, 1)

Teaches: randn_like takes dtype and device from grad_output; g is not changed in place. Two backward passes differ, by
    design, so the noise is declared. Under checkpointing or data parallelism each run and each process draws its own.
When not to use it: to regularise parameters, add the noise in the optimiser, once per step.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "randomness in backward is an error unless it is the purpose: then declare it"
SECOND_ORDER = False
COMPILES = True


class NoisyGradient(torch.autograd.Function):  # gradsmith: surrogate[noise]
    @staticmethod
    def forward(ctx: Any, x: Tensor, sigma: float) -> Tensor:
        ctx.sigma = sigma
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output + ctx.sigma * torch.randn_like(grad_output), None


gradsmith_inputs = {"NoisyGradient": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.1)}
