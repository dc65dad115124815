# expect: out-of-bounds-store
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable


@triton.jit
def forward_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(a_ptr + i, mask=inside, other=0.0)
    b = tl.load(b_ptr + i, mask=inside, other=0.0)
    tl.store(y_ptr + i, a * tl.sigmoid(a) * b, mask=inside)


@triton.jit
def backward_kernel(a_ptr, b_ptr, g_ptr, da_ptr, db_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(a_ptr + i, mask=inside, other=0.0)
    b = tl.load(b_ptr + i, mask=inside, other=0.0)
    g = tl.load(g_ptr + i, mask=inside, other=0.0)
    s = tl.sigmoid(a)
    tl.store(da_ptr + i, g * b * (s + a * s * (1 - s)))
    tl.store(db_ptr + i, g * a * s, mask=inside)


class SiluMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        a, b = a.contiguous(), b.contiguous()
        ctx.save_for_backward(a, b)
        y = torch.empty_like(a)
        forward_kernel[(triton.cdiv(a.numel(), 64),)](a, b, y, a.numel(), BLOCK=64)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        da, db = torch.empty_like(a), torch.empty_like(b)
        grid = (triton.cdiv(a.numel(), 64),)
        backward_kernel[grid](a, b, grad_output.contiguous(), da, db, a.numel(), BLOCK=64)
        return da, db


gradsmith_inputs = {"SiluMul": lambda: (torch.randn(5, 37, requires_grad=True), torch.randn(5, 37, requires_grad=True))}
