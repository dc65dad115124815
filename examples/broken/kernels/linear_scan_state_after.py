# expect: wrong-gradient
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable


@triton.jit
def forward_kernel(a_ptr, x_ptr, h_ptr, steps, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < width
    h = tl.zeros((BLOCK,), tl.float32)
    for t in range(steps):
        a = tl.load(a_ptr + t * width + i, mask=inside, other=0.0)
        x = tl.load(x_ptr + t * width + i, mask=inside, other=0.0)
        h = a * h + x
        tl.store(h_ptr + t * width + i, h, mask=inside)


@triton.jit
def backward_kernel(a_ptr, h_ptr, g_ptr, da_ptr, dx_ptr, steps, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < width
    d = tl.zeros((BLOCK,), tl.float32)
    for k in range(steps):
        t = steps - 1 - k
        d += tl.load(g_ptr + t * width + i, mask=inside, other=0.0)
        before = tl.load(h_ptr + t * width + i, mask=inside & (t > 0), other=0.0)
        tl.store(dx_ptr + t * width + i, d, mask=inside)
        tl.store(da_ptr + t * width + i, d * before, mask=inside)
        d = d * tl.load(a_ptr + t * width + i, mask=inside, other=0.0)


class LinearScan(torch.autograd.Function):
    """a and x are (time, channels)."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor) -> Tensor:
        a, x = a.contiguous(), x.contiguous()
        steps, width = x.shape
        h = torch.empty_like(x)
        forward_kernel[(triton.cdiv(width, 16),)](a, x, h, steps, width, BLOCK=16)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        a, h = ctx.saved_tensors
        steps, width = h.shape
        da, dx = torch.empty_like(a), torch.empty_like(h)
        grid = (triton.cdiv(width, 16),)
        backward_kernel[grid](a, h, grad_output.contiguous(), da, dx, steps, width, BLOCK=16)
        return da, dx


gradsmith_inputs = {"LinearScan": lambda: (torch.rand(6, 21, requires_grad=True), torch.randn(6, 21, requires_grad=True))}
