"""Built-in: torch.nn.functional.silu times a tensor. A gated unit as two Triton kernels (not run on our machines).

    s  = sigmoid(a)
    y  = a * s * b
    da = g * b * s * (1 + a * (1 - s))              db = g * a * s

Teaches: kernels see addresses, so all operands are made contiguous, grad_output included; sigmoid is recomputed in
    the backward kernel instead of stored; the arithmetic is float32 whatever the tensors are; each result gets a
    buffer of its own, since a kernel that overwrites grad_output does so behind autograd's back.
When not to use it: torch.compile writes this very kernel. Needs a GPU and triton; the file imports without either, so
    that it can be read and linted anywhere.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

TEACHES = "contiguous operands, recomputation in the kernel, float32 arithmetic, a fresh buffer per gradient"
BUILTIN = "torch.nn.functional.silu"
SECOND_ORDER = False
COMPILES = False
AVAILABLE = triton is not None and torch.cuda.is_available()
BLOCK = 1024

if triton is not None:

    @triton.jit
    def forward_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        a = tl.load(a_ptr + at, inside, other=0).to(tl.float32)
        b = tl.load(b_ptr + at, inside, other=0).to(tl.float32)
        tl.store(y_ptr + at, a * tl.sigmoid(a) * b, inside)

    @triton.jit
    def backward_kernel(a_ptr, b_ptr, g_ptr, da_ptr, db_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        a = tl.load(a_ptr + at, inside, other=0).to(tl.float32)
        b = tl.load(b_ptr + at, inside, other=0).to(tl.float32)
        g = tl.load(g_ptr + at, inside, other=0).to(tl.float32)
        s = tl.sigmoid(a)
        tl.store(da_ptr + at, g * b * s * (1 + a * (1 - s)), inside)
        tl.store(db_ptr + at, g * a * s, inside)


class GatedUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        if not AVAILABLE:
            raise RuntimeError("GatedUnit needs triton and a GPU: use torch.nn.functional.silu(a) * b")
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(f"shapes and dtypes must agree: {a.shape} {a.dtype}, {b.shape} {b.dtype}")
        ctx.save_for_backward(a, b)
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty_like(a)
        forward_kernel[(triton.cdiv(a.numel(), BLOCK),)](a, b, y, a.numel(), BLOCK=BLOCK)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        a, b = (t.contiguous() for t in ctx.saved_tensors)
        grad_output = grad_output.contiguous()
        grad_a, grad_b = torch.empty_like(a), torch.empty_like(b)
        grid = (triton.cdiv(a.numel(), BLOCK),)
        backward_kernel[grid](a, b, grad_output, grad_a, grad_b, a.numel(), BLOCK=BLOCK)
        return grad_a, grad_b


gradsmith_inputs = (
    {
        "GatedUnit": lambda: (
            torch.randn(4, 3, device="cuda", requires_grad=True),
            torch.randn(4, 3, device="cuda", requires_grad=True),
        )
    }
    if AVAILABLE
    else {}
)
