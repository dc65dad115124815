"""Built-in: torch.softmax. A row in each program.

    y  = exp(x - max x) / sum exp(x - max x)
    dx = y * (g - sum g y)

Teaches: what a masked lane holds matters to a reduction: -inf for a maximum, 0 for a sum.
When not to use it: for rows longer than a block; attention fuses it with both products instead.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable


@triton.jit
def forward_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def backward_kernel(y_ptr, g_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row + i, mask=i < n, other=0.0)
    g = tl.load(g_ptr + row + i, mask=i < n, other=0.0)
    tl.store(dx_ptr + row + i, y * (g - tl.sum(y * g, 0)), mask=i < n)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        y, n = torch.empty_like(x), x.shape[-1]
        forward_kernel[(x.numel() // n,)](x, y, n, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        dx, n = torch.empty_like(y), y.shape[-1]
        backward_kernel[(y.numel() // n,)](y, grad_output.contiguous(), dx, n, BLOCK=triton.next_power_of_2(n))
        return dx


gradsmith_inputs = {"Softmax": lambda: (torch.randn(5, 37, requires_grad=True),)}
