"""The gated product of SwiGLU: y = silu(gate) * up. Saves gate and up; written out, silu(gate) is saved as well."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradsmith.native.kernels import Kernels
from gradsmith.native.memory import room
from gradsmith.ops.asked import floating
from gradsmith.ops.route import in_memory, transformed, wide

_BLOCK = 4096
KERNELS = Kernels(r"""
#define BLOCK 4096
void glu_forward(const real *a, const real *b, real *y, long n, long thread, long first, long last) {
  const long end = last * BLOCK < n ? last * BLOCK : n;
  #pragma omp simd
  for (long i = first * BLOCK; i < end; i++) y[i] = a[i] * SIGMOID(a[i]) * b[i];
}
void glu_backward(const real *a, const real *b, const real *g, real *da, real *db, long n, long thread, long first, long last) {
  const long end = last * BLOCK < n ? last * BLOCK : n;
  #pragma omp simd
  for (long i = first * BLOCK; i < end; i++) {
    const real s = SIGMOID(a[i]), silu = a[i] * s;
    da[i] = g[i] * b[i] * (s + silu * (ONE - s));
    db[i] = g[i] * silu;
  }
}
""")


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        if in_memory(gate, up) and KERNELS.ready(gate.dtype):
            a, b, n = gate.contiguous(), up.contiguous(), gate.numel()
            y = room(a.shape, a.dtype)
            KERNELS.run("glu_forward", [a, b, y], [], [n], -(-n // _BLOCK), n)
            return y
        a, b = wide(gate, up)
        return (F.silu(a) * b).to(gate.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        if not torch.is_grad_enabled() and in_memory(gate, up, grad) and KERNELS.ready(gate.dtype):
            a, b, n = gate.contiguous(), up.contiguous(), gate.numel()
            da, db = room(a.shape, a.dtype), room(b.shape, b.dtype)
            KERNELS.run("glu_backward", [a, b, grad.contiguous(), da, db], [], [n], -(-n // _BLOCK), n)
            return da, db
        a, b, g = wide(gate, up, grad)
        s = torch.sigmoid(a)
        return (g * b * s * (1 + a * (1 - s))).to(gate.dtype), (g * a * s).to(up.dtype)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, element by element; gate and up have the same shape.

    >>> swiglu(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 2.0]))
    tensor([0.0000, 1.4621])
    """
    floating(gate, "swiglu", "gate")
    floating(up, "swiglu", "up")
    if gate.shape != up.shape:
        raise ValueError(f"swiglu: gate has shape {tuple(gate.shape)} and up {tuple(up.shape)}; they must be equal.")
    if transformed() or gate.dtype != up.dtype:
        return F.silu(gate) * up
    result: Tensor = _SwiGLU.apply(gate, up)
    return result


class SwiGLU(nn.Module):
    """The feed-forward block of LLaMA: down(silu(gate(x)) * up(x)).

    >>> SwiGLU(8, 16)(torch.ones(2, 8)).shape
    torch.Size([2, 8])
    """

    def __init__(self, features: int, hidden: int, bias: bool = False) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(features, hidden, bias), nn.Linear(features, hidden, bias)
        self.down = nn.Linear(hidden, features, bias)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(swiglu(self.gate(x), self.up(x)))
        return result
