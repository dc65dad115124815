"""Built-in: torch.utils.checkpoint.checkpoint. One block whose hidden activations are recomputed, not stored.

    y = gelu(x A^T) B^T
    backward runs the block a second time, with autograd on, and differentiates that

Teaches: saved are the three inputs and nothing else; the wide hidden layer exists only while backward runs. The inner
    autograd.grad is asked for exactly the gradients that are needed. Its result has no graph, hence
    once_differentiable.
When not to use it: checkpoint(block, x, use_reentrant=False) also serves dropout, autocast and second order.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

TEACHES = "save the inputs, run the block again in backward, and differentiate that"
BUILTIN = "torch.utils.checkpoint.checkpoint"
SECOND_ORDER = False
COMPILES = False


def block(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return F.gelu(x @ up.t()) @ down.t()


class RecomputedBlock(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, up: Tensor, down: Tensor) -> Tensor:
        ctx.save_for_backward(x, up, down)
        return block(x, up, down)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad
        again = [t.detach().requires_grad_(need) for t, need in zip(ctx.saved_tensors, needed)]
        with torch.enable_grad():
            y = block(*again)
        wanted = [t for t, need in zip(again, needed) if need]
        gradients = iter(torch.autograd.grad(y, wanted, grad_output))
        return tuple(next(gradients) if need else None for need in needed)


gradsmith_inputs = {
    "RecomputedBlock": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(7, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 7, dtype=torch.float64, requires_grad=True),
    )
}
