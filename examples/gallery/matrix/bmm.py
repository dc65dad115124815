"""Built-in: torch.bmm. A batch of matrix products.

    y[n]  = a[n] b[n]
    da[n] = g[n] b[n]^H          db[n] = a[n]^H g[n]

Teaches: the batch dimension is carried along, never summed, because no operand was broadcast over it; .mH (transpose
    and conjugate) makes the same lines right for complex numbers, where .mT would not be.
When not to use it: torch.bmm, or `a @ b`, which also broadcasts.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "a batch dimension is carried along, not summed; .mH serves real and complex alike"
BUILTIN = "torch.bmm"
SECOND_ORDER = True
COMPILES = True


class BatchedMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return torch.bmm(a, b)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_a = torch.bmm(grad_output, b.mH)
        if ctx.needs_input_grad[1]:
            grad_b = torch.bmm(a.mH, grad_output)
        return grad_a, grad_b


gradsmith_inputs = {
    "BatchedMatmul": [
        lambda: (
            torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True),
        ),
        lambda: (
            torch.randn(2, 3, 2, dtype=torch.complex128, requires_grad=True),
            torch.randn(2, 2, 4, dtype=torch.complex128, requires_grad=True),
        ),
    ]
}
