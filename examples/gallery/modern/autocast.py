"""Built-in: torch.matmul. A matrix product that works under autocast, forward and backward.

    y  = a b
    da = g b^T          db = a^T g

Teaches: under autocast forward multiplies in bfloat16, but what it saved is float32 and grad_output arrives in
    bfloat16: backward, which runs outside the autocast block, fails on the mixed product. custom_fwd remembers the
    autocast state and custom_bwd restores it. Each gradient goes back in its argument's own dtype.
When not to use it: torch.matmul is on autocast's list already; a plain Function without matrix products needs
    nothing.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "custom_fwd and custom_bwd: backward in the autocast state of forward, gradients in the arguments' dtype"
BUILTIN = "torch.matmul"
SECOND_ORDER = True
COMPILES = True
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class MatMul(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type=DEVICE)
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type=DEVICE)
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_a = (grad_output @ b.mT).to(a.dtype)
        if ctx.needs_input_grad[1]:
            grad_b = (a.mT @ grad_output).to(b.dtype)
        return grad_a, grad_b


gradsmith_inputs = {
    "MatMul": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 5, dtype=torch.float64, requires_grad=True),
    )
}
