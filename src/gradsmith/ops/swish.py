"""Swish with a beta that is learned: y = x sigmoid(beta x).

    s  = sigmoid(beta x)
    dx = g (s + beta x s (1 - s))        dbeta = sum of g x^2 s (1 - s)

Saves x and beta; what people write, `x * torch.sigmoid(beta * x)`, saves the sigmoid, too. With beta = 1 and nothing to
learn, torch.nn.functional.silu is as good.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.native.kernels import Kernels
from gradsmith.native.memory import room
from gradsmith.ops.asked import floating
from gradsmith.ops.route import in_memory, transformed, wide

_BLOCK = 4096
KERNELS = Kernels(r"""
#define BLOCK 4096
void swish_forward(const real *x, const real *beta, real *y, long n, long thread, long first, long last) {
  const real b = *beta;
  const long end = last * BLOCK < n ? last * BLOCK : n;
  #pragma omp simd
  for (long i = first * BLOCK; i < end; i++) y[i] = x[i] * SIGMOID(b * x[i]);
}
void swish_backward(const real *x, const real *beta, const real *g, real *dx, real *db, long n, long thread, long first, long last) {
  const real b = *beta;
  double total = 0;
  for (long k = first; k < last; k++) {
    const long end = (k + 1) * BLOCK < n ? (k + 1) * BLOCK : n;
    real sum = 0;
    #pragma omp simd reduction(+:sum)
    for (long i = k * BLOCK; i < end; i++) {
      const real s = SIGMOID(b * x[i]), slope = x[i] * s * (ONE - s);
      dx[i] = g[i] * (s + b * slope);
      sum += g[i] * x[i] * slope;
    }
    total += sum;
  }
  db[thread] = (real)total;
}
""")


class _Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(x, beta)
        if in_memory(x, beta) and beta.numel() == 1 and KERNELS.ready(x.dtype):
            ready = x.contiguous()
            y = room(ready.shape, ready.dtype)
            KERNELS.run("swish_forward", [ready, beta, y], [], [x.numel()], -(-x.numel() // _BLOCK), x.numel())
            return y
        if x.dtype in (torch.float32, torch.float64):
            return x * torch.sigmoid(beta * x)
        a, b = wide(x, beta)
        return (a * torch.sigmoid(b * a)).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, beta = ctx.saved_tensors
        if in_memory(x, beta, grad) and beta.numel() == 1 and not torch.is_grad_enabled() and KERNELS.ready(x.dtype):
            dx = room(x.shape, x.dtype)
            blocks = -(-x.numel() // _BLOCK)
            db = x.new_zeros(KERNELS.threads(blocks, x.numel()))
            tensors = [x.contiguous(), beta, grad.contiguous(), dx, db]
            KERNELS.run("swish_backward", tensors, [], [x.numel()], blocks, x.numel())
            return dx, db.sum().reshape(beta.shape)
        if x.dtype not in (torch.float32, torch.float64):
            dx, db = _gradients(*wide(x, beta, grad))
            return dx.to(x.dtype), db.to(beta.dtype)
        return _gradients(x, beta, grad)


def _gradients(x: Tensor, beta: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    s = torch.sigmoid(beta * x)
    slope = x * s * (1 - s)
    db = grad * x * slope
    return grad * (s + beta * slope), db.sum() if beta.dim() == 0 else db.sum_to_size(beta.shape)


def swish(x: Tensor, beta: Tensor | float = 1.0) -> Tensor:
    """x * sigmoid(beta * x); beta is a tensor that broadcasts to x (learned), or a number.

    >>> swish(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor(2.0))
    tensor([-0.1192,  0.0000,  0.8808])
    """
    floating(x, "swish")
    if not isinstance(beta, Tensor):
        beta = torch.tensor(float(beta), dtype=x.dtype, device=x.device)
    floating(beta, "swish", "beta")
    if beta.dim() and not _broadcasts(beta.shape, x.shape):
        raise ValueError(f"swish: beta of shape {tuple(beta.shape)} does not broadcast to x of {tuple(x.shape)}.")
    if transformed() or x.dtype != beta.dtype:
        return x * torch.sigmoid(beta * x)
    result: Tensor = _Swish.apply(x, beta)
    return result


def _broadcasts(small: torch.Size, large: torch.Size) -> bool:
    return len(small) <= len(large) and all(b in (1, n) for b, n in zip(reversed(small), reversed(large)))


class Swish(nn.Module):
    """`swish` with one beta that is learned, or one per feature (`Swish(features)`).

    >>> Swish()(torch.ones(2)).shape
    torch.Size([2])
    """

    def __init__(self, features: int | None = None, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.full(() if features is None else (features,), float(beta)))

    def forward(self, x: Tensor) -> Tensor:
        return swish(x, self.beta)
