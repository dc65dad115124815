# expect: race
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

PROGRAMS = 3


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, r_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    r = 1 / tl.sqrt(tl.sum(x * x, 0) / n + eps)
    tl.store(r_ptr + row, r)
    tl.store(y_ptr + row * n + i, x * r * w, mask=i < n)


@triton.jit
def backward_kernel(x_ptr, w_ptr, r_ptr, g_ptr, dx_ptr, dw_ptr, rows, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, rows, PROGRAMS):
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        g = tl.load(g_ptr + row * n + i, mask=i < n, other=0.0)
        r = tl.load(r_ptr + row)
        gw = g * w
        tl.store(dx_ptr + row * n + i, r * (gw - x * r * r * (tl.sum(gw * x, 0) / n)), mask=i < n)
        dw += g * x * r
    tl.store(dw_ptr + i, tl.load(dw_ptr + i, mask=i < n, other=0.0) + dw, mask=i < n)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, eps: float) -> Tensor:
        x, w = x.contiguous(), w.contiguous()
        n = x.shape[-1]
        rows = x.numel() // n
        y, r = torch.empty_like(x), x.new_empty(rows)
        forward_kernel[(rows,)](x, w, y, r, n, eps, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x, w, r)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None]:
        x, w, r = ctx.saved_tensors
        n = x.shape[-1]
        dx, parts = torch.empty_like(x), x.new_empty(PROGRAMS, n)
        g = grad_output.contiguous()
        backward_kernel[(PROGRAMS,)](
            x, w, r, g, dx, parts, x.numel() // n, n, PROGRAMS=PROGRAMS, BLOCK=triton.next_power_of_2(n)
        )
        return dx, parts.sum(0), None


gradsmith_inputs = {"RMSNorm": lambda: (torch.randn(5, 37, requires_grad=True), torch.randn(37, requires_grad=True), 1e-6)}
